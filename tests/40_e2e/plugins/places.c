/* A backend whose instances tell where they were put: each appends a line
 *
 *   NAME KIND DEVICE POLICY [SECONDARY:ID]... [profile=NAME]...
 *
 * to the file that the environment names as PLACES. PLACES_WISHES holds what the backend prefers:
 * KIND:COUNT[:DEVICE]... parted by commas, KIND being a number of TRITONSERVER_InstanceGroupKind.
 * It executes nothing. */
#include "triton/core/tritonbackend.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                                      TRITONBACKEND_BackendAttribute *attributes)
{
    (void)backend;
    const char *at = getenv("PLACES_WISHES");
    while (at && *at) {
        uint64_t devices[8];
        uint64_t count = 0;
        char *end;
        long kind = strtol(at, &end, 10);
        uint64_t instances = strtoull(end + 1, &end, 10);
        while (*end == ':')
            devices[count++] = strtoull(end + 1, &end, 10);
        TRITONSERVER_Error *err = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
            attributes, (TRITONSERVER_InstanceGroupKind)kind, instances, devices, count);
        if (err)
            return err;
        at = *end ? end + 1 : end;
    }
    return NULL;
}

/* The name of the policy is the only member of the message. */
static TRITONSERVER_Error *policy_of(TRITONBACKEND_ModelInstance *instance, char *to, size_t room)
{
    TRITONSERVER_Message *message;
    const char *json;
    size_t len;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceHostPolicy(instance, &message);
    if (!err)
        err = TRITONSERVER_MessageSerializeToJson(message, &json, &len);
    if (!err)
        snprintf(to, room, "%.*s", (int)strcspn(json + 2, "\""), json + 2);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    const char *name, *text;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    int64_t id;
    uint32_t count = 0;
    char policy[128], line[1024];
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceName(instance, &name);
    if (!err)
        err = TRITONBACKEND_ModelInstanceKind(instance, &kind);
    if (!err)
        err = TRITONBACKEND_ModelInstanceDeviceId(instance, &device);
    if (!err)
        err = policy_of(instance, policy, sizeof(policy));
    if (err)
        return err;
    int len = snprintf(line, sizeof(line), "%s %s %d %s", name,
                       TRITONSERVER_InstanceGroupKindString(kind), (int)device, policy);
    err = TRITONBACKEND_ModelInstanceSecondaryDeviceCount(instance, &count);
    for (uint32_t i = 0; !err && i < count; i++) {
        err = TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, i, &text, &id);
        if (!err)
            len += snprintf(line + len, sizeof(line) - (size_t)len, " %s:%" PRId64, text, id);
    }
    if (!err)
        err = TRITONBACKEND_ModelInstanceProfileCount(instance, &count);
    for (uint32_t i = 0; !err && i < count; i++) {
        err = TRITONBACKEND_ModelInstanceProfileName(instance, i, &text);
        if (!err)
            len += snprintf(line + len, sizeof(line) - (size_t)len, " profile=%s", text);
    }
    line[len++] = '\n';
    int fd = open(getenv("PLACES"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || write(fd, line, (size_t)len) != len)
        abort();
    close(fd);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    (void)instance;
    (void)requests;
    (void)count;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "places executes nothing");
}
