#include "support/fuzz_recite.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

#define MOST 16

static void must_recite(TRITONSERVER_Error *e)
{
    CHECK(!e);
}

static int64_t number_of(TRITONBACKEND_Request *request, const char *wanted, int64_t otherwise)
{
    uint32_t count;
    must_recite(TRITONBACKEND_RequestParameterCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_ParameterType type;
        const void *value;
        must_recite(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value));
        if (type == TRITONSERVER_PARAMETER_INT && strcmp(name, wanted) == 0)
            return *(const int64_t *)value;
    }
    return otherwise;
}

/* A request without parameters says it in INPUT1, an FP32. */
static int64_t count_of(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *input;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    const void *data;
    uint64_t size;
    float count = 1;
    TRITONSERVER_Error *e = TRITONBACKEND_RequestInput(request, "INPUT1", &input);
    if (!e)
        e = TRITONBACKEND_InputBuffer(input, 0, &data, &size, &memory, &device);
    if (!e && size == sizeof(count))
        memcpy(&count, data, sizeof(count));
    TRITONSERVER_ErrorDelete(e);
    return count >= 0 && count < MOST ? (int64_t)count : MOST;
}

static TRITONSERVER_Error *recite_input(TRITONBACKEND_Request *request, uint32_t index,
                                        TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Input *input;
    TRITONBACKEND_Output *output;
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint32_t rank, pieces;
    uint64_t bytes;
    char to[32];
    must_recite(TRITONBACKEND_RequestInputByIndex(request, index, &input));
    must_recite(
        TRITONBACKEND_InputProperties(input, &name, &datatype, &shape, &rank, &bytes, &pieces));
    snprintf(to, sizeof(to), "OUTPUT%s", name + strlen("INPUT"));
    must_recite(TRITONBACKEND_ResponseOutput(response, &output, to, datatype, shape, rank));
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    void *at;
    TRITONSERVER_Error *e = TRITONBACKEND_OutputBuffer(output, &at, bytes, &memory, &device);
    char *end = at;
    for (uint32_t i = 0; !e && i < pieces; i++) {
        const void *piece;
        uint64_t size;
        must_recite(TRITONBACKEND_InputBuffer(input, i, &piece, &size, &memory, &device));
        memcpy(end, piece, size);
        end += size;
    }
    return e;
}

static void recite_once(TRITONBACKEND_Request *request, TRITONBACKEND_ResponseFactory *factory,
                        bool fails)
{
    TRITONBACKEND_Response *response;
    uint32_t count;
    TRITONSERVER_Error *e =
        fails ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "\"recited\"\n\nto here")
              : NULL;
    must_recite(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    must_recite(TRITONBACKEND_RequestInputCount(request, &count));
    for (uint32_t i = 0; !e && i < count; i++)
        e = recite_input(request, i, response);
    must_recite(TRITONBACKEND_ResponseSend(response, 0, e));
    TRITONSERVER_ErrorDelete(e);
}

static void recite_to(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_ResponseFactory *factory;
    int64_t count = number_of(request, "count", count_of(request));
    int64_t fail_at = number_of(request, "fail_at", -1);
    must_recite(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    for (int64_t i = 0; i < count && i < MOST; i++)
        recite_once(request, factory, i == fail_at);
    must_recite(
        TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    must_recite(TRITONBACKEND_ResponseFactoryDelete(factory));
    must_recite(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONSERVER_Error *fuzz_recite_execute(TRITONBACKEND_ModelInstance *instance,
                                        TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void)instance;
    for (uint32_t i = 0; i < count; i++)
        recite_to(requests[i]);
    return NULL;
}
