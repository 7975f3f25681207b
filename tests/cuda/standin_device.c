/* Devices and their contexts. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

#define STACK 16 /* contexts that a thread may have pushed */
#define MIB   ((size_t)1 << 20)

static struct standin_device devices[STANDIN_DEVICES];
static struct cuda_context contexts[STANDIN_DEVICES];
static int count;
static bool ready;

static _Thread_local struct cuda_context *stack[STACK];
static _Thread_local int depth;

static void read_devices(void)
{
    const char *at = getenv("NEREID_CUDA_DEVICES");
    at = at ? at : "8.0:256";
    count = 0;
    while (*at && count < STANDIN_DEVICES) {
        struct standin_device *d = &devices[count];
        char *end;
        *d = (struct standin_device){0};
        d->major = (int)strtol(at, &end, 10);
        d->minor = *end == '.' ? (int)strtol(end + 1, &end, 10) : 0;
        d->bytes = (*end == ':' ? (size_t)strtol(end + 1, &end, 10) : 256) * MIB;
        contexts[count++].device = d;
        at = *end ? end + 1 : end;
    }
}

int standin_ready(void)
{
    return ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

int standin_device_count(void)
{
    return count;
}

struct standin_device *standin_device(int id)
{
    return id >= 0 && id < count ? &devices[id] : NULL;
}

int standin_device_id(const struct standin_device *d)
{
    return (int)(d - devices);
}

struct standin_device *standin_current(int *ret_result)
{
    *ret_result = standin_ready();
    if (*ret_result)
        return NULL;
    struct cuda_context *c = depth ? stack[depth - 1] : NULL;
    if (c && c->device->retained)
        return c->device;
    *ret_result = standin_wrong(CUDA_ERROR_INVALID_CONTEXT, "a call without a current context");
    return NULL;
}

int cuInit(unsigned flags)
{
    int rc = standin_begin(STANDIN_cuInit);
    if (rc)
        return rc;
    if (flags)
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    bool used = false;
    for (int i = 0; i < count; i++)
        used = used || devices[i].retained;
    if (!used) /* a test may have changed them */
        read_devices();
    ready = count > 0;
    return standin_end(ready ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

int cuDriverGetVersion(int *ret)
{
    int rc = standin_begin(STANDIN_cuDriverGetVersion);
    if (rc)
        return rc;
    *ret = 12000;
    return standin_end(CUDA_SUCCESS);
}

static const char *name_of(int result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return "CUDA_SUCCESS";
    case CUDA_ERROR_INVALID_VALUE:
        return "CUDA_ERROR_INVALID_VALUE";
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "CUDA_ERROR_OUT_OF_MEMORY";
    case CUDA_ERROR_NOT_INITIALIZED:
        return "CUDA_ERROR_NOT_INITIALIZED";
    case CUDA_ERROR_NO_DEVICE:
        return "CUDA_ERROR_NO_DEVICE";
    case CUDA_ERROR_INVALID_DEVICE:
        return "CUDA_ERROR_INVALID_DEVICE";
    case CUDA_ERROR_INVALID_CONTEXT:
        return "CUDA_ERROR_INVALID_CONTEXT";
    case CUDA_ERROR_INVALID_HANDLE:
        return "CUDA_ERROR_INVALID_HANDLE";
    default:
        return NULL;
    }
}

int cuGetErrorName(int result, const char **ret)
{
    int rc = standin_begin(STANDIN_cuGetErrorName);
    if (rc)
        return rc;
    *ret = name_of(result);
    return standin_end(*ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

int cuGetErrorString(int result, const char **ret)
{
    int rc = standin_begin(STANDIN_cuGetErrorString);
    if (rc)
        return rc;
    *ret = name_of(result) ? "a text of the stand-in" : NULL;
    return standin_end(*ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

int cuDeviceGetCount(int *ret)
{
    int rc = standin_begin(STANDIN_cuDeviceGetCount);
    if (rc)
        return rc;
    *ret = count;
    return standin_end(standin_ready());
}

int cuDeviceGet(cuda_device *ret, int ordinal)
{
    int rc = standin_begin(STANDIN_cuDeviceGet);
    if (rc)
        return rc;
    if (!standin_device(ordinal))
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    *ret = ordinal;
    return standin_end(standin_ready());
}

int cuDeviceGetName(char *ret, int len, cuda_device d)
{
    int rc = standin_begin(STANDIN_cuDeviceGetName);
    if (rc)
        return rc;
    if (!standin_device(d))
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    snprintf(ret, (size_t)len, "Stand-in %d", d);
    return standin_end(CUDA_SUCCESS);
}

int cuDeviceGetUuid(struct cuda_uuid *ret, cuda_device d)
{
    int rc = standin_begin(STANDIN_cuDeviceGetUuid);
    if (rc)
        return rc;
    if (!standin_device(d))
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    for (size_t i = 0; i < sizeof(ret->bytes); i++)
        ret->bytes[i] = (char)(0xa0 + i);
    ret->bytes[15] = (char)d;
    return standin_end(CUDA_SUCCESS);
}

int cuDeviceGetAttribute(int *ret, int attribute, cuda_device d)
{
    int rc = standin_begin(STANDIN_cuDeviceGetAttribute);
    if (rc)
        return rc;
    struct standin_device *device = standin_device(d);
    if (!device)
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    if (attribute != CUDA_ATTRIBUTE_CAPABILITY_MAJOR &&
        attribute != CUDA_ATTRIBUTE_CAPABILITY_MINOR)
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    *ret = attribute == CUDA_ATTRIBUTE_CAPABILITY_MAJOR ? device->major : device->minor;
    return standin_end(CUDA_SUCCESS);
}

int cuDeviceTotalMem_v2(size_t *ret, cuda_device d)
{
    int rc = standin_begin(STANDIN_cuDeviceTotalMem_v2);
    if (rc)
        return rc;
    struct standin_device *device = standin_device(d);
    if (device)
        *ret = device->bytes;
    return standin_end(device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

int cuDeviceCanAccessPeer(int *ret, cuda_device d, cuda_device peer)
{
    int rc = standin_begin(STANDIN_cuDeviceCanAccessPeer);
    if (rc)
        return rc;
    if (!standin_device(d) || !standin_device(peer))
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    *ret = d != peer;
    return standin_end(CUDA_SUCCESS);
}

int cuDevicePrimaryCtxRetain(struct cuda_context **ret, cuda_device d)
{
    int rc = standin_begin(STANDIN_cuDevicePrimaryCtxRetain);
    if (rc)
        return rc;
    struct standin_device *device = standin_device(d);
    if (!device)
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    device->retained++;
    standin_live(STANDIN_CONTEXT, 1);
    *ret = &contexts[d];
    return standin_end(CUDA_SUCCESS);
}

int cuDevicePrimaryCtxRelease_v2(cuda_device d)
{
    int rc = standin_begin(STANDIN_cuDevicePrimaryCtxRelease_v2);
    if (rc)
        return rc;
    struct standin_device *device = standin_device(d);
    if (!device || !device->retained)
        return standin_end(standin_wrong(CUDA_ERROR_INVALID_CONTEXT,
                                         "the context of device %d is released once too often", d));
    if (--device->retained == 0 && device->used)
        standin_wrong(0, "the context of device %d is released while %zu bytes are allocated", d,
                      device->used);
    standin_live(STANDIN_CONTEXT, -1);
    return standin_end(CUDA_SUCCESS);
}

int cuCtxPushCurrent_v2(struct cuda_context *c)
{
    int rc = standin_begin(STANDIN_cuCtxPushCurrent_v2);
    if (rc)
        return rc;
    if (c < contexts || c >= contexts + count || !c->device->retained || depth == STACK)
        return standin_end(
            standin_wrong(CUDA_ERROR_INVALID_CONTEXT, "a context is pushed that is none"));
    stack[depth++] = c;
    standin_live(STANDIN_PUSHED, 1);
    return standin_end(CUDA_SUCCESS);
}

int cuCtxPopCurrent_v2(struct cuda_context **ret)
{
    int rc = standin_begin(STANDIN_cuCtxPopCurrent_v2);
    if (rc)
        return rc;
    if (!depth)
        return standin_end(
            standin_wrong(CUDA_ERROR_INVALID_CONTEXT, "a context is popped that is not there"));
    *ret = stack[--depth];
    standin_live(STANDIN_PUSHED, -1);
    return standin_end(CUDA_SUCCESS);
}

int cuCtxEnablePeerAccess(struct cuda_context *peer, unsigned flags)
{
    int rc = standin_begin(STANDIN_cuCtxEnablePeerAccess);
    if (rc)
        return rc;
    struct standin_device *d = standin_current(&rc);
    if (!d || flags)
        return standin_end(d ? CUDA_ERROR_INVALID_VALUE : rc);
    bool *reaches = &d->reaches[standin_device_id(peer->device)];
    rc = *reaches ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
    *reaches = true;
    return standin_end(rc);
}
