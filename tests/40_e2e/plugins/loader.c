/* A backend whose models load another one while they are loaded: the one that parameter LOADS
 * names. */
#include <stdio.h>
#include <string.h>

#include "triton/core/tritonbackend.h"

#define RETURN_IF(call)               \
    do {                              \
        TRITONSERVER_Error *e = call; \
        if (e)                        \
            return e;                 \
    } while (0)

/* The value of parameter LOADS in a configuration. */
static void find_name(const char *json, char *name, size_t room)
{
    const char *at = strstr(json, "\"LOADS\"");
    at = at ? strstr(at, "\"string_value\"") : NULL;
    at = at ? strchr(at, ':') : NULL;
    at = at ? strchr(at, '"') : NULL;
    size_t len = at ? strcspn(at + 1, "\"") : 0;
    snprintf(name, room, "%.*s", (int)len, at ? at + 1 : "");
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *config;
    TRITONSERVER_Server *server;
    const char *json;
    size_t len;
    char name[100];
    RETURN_IF(TRITONBACKEND_ModelServer(model, &server));
    RETURN_IF(TRITONBACKEND_ModelConfig(model, 1, &config));
    TRITONSERVER_Error *e = TRITONSERVER_MessageSerializeToJson(config, &json, &len);
    if (!e)
        find_name(json, name, sizeof(name));
    TRITONSERVER_MessageDelete(config);
    return e ? e : TRITONSERVER_ServerLoadModel(server, name);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    (void)instance;
    (void)requests;
    (void)count;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "nothing is run here");
}
