#ifndef NEREID_CUDA_DRIVER_H
#define NEREID_CUDA_DRIVER_H
/* The functions of CUDA's driver (libcuda.so.1) that Nereid calls. The library is opened at run
 * time and never linked, so the same binary runs where there is none.
 *
 * To add a function, add a row to CUDA_DRIVER_CALLS:
 *   CALL(member of struct cuda_driver, symbol of the library, (its parameters))
 * with the types below. tests/cuda/standin has to define the symbol too; the linker of the tests
 * says so. tests/00_gates/test_cuda_table.py compares the rows with NVIDIA's own declarations,
 * which the package cuda-bindings brings. Symbols that end in _v2 or WithFlags are those that
 * CUDA's header maps the plain name to. */

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CUDA_DRIVER_LIBRARY "libcuda.so.1"

/* What the functions return, as far as Nereid tells them apart. */
enum cuda_result {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
};

/* Values of CUdevice_attribute. */
#define CUDA_ATTRIBUTE_CAPABILITY_MAJOR 75
#define CUDA_ATTRIBUTE_CAPABILITY_MINOR 76

/* Pinned memory counts as pinned for every device. */
#define CUDA_HOST_PORTABLE 1u
/* The stream does not wait for the default stream. */
#define CUDA_STREAM_NON_BLOCKING 1u
/* Who waits for the event sleeps, and does not look again and again. */
#define CUDA_EVENT_BLOCKING 1u
/* The event has no time, which makes it cheaper. */
#define CUDA_EVENT_NO_TIMING 2u
/* While a stream is recorded, what disturbs that is forbidden to the recording thread alone. */
#define CUDA_CAPTURE_THREAD 1
/* A handle's memory is opened with access from other devices. */
#define CUDA_IPC_LAZY_PEER_ACCESS 1u

typedef int cuda_device;
typedef uint64_t cuda_address; /* a pointer into the memory of a device */

struct cuda_context; /* of the driver */
struct cuda_stream;
struct cuda_event;
struct cuda_graph;      /* what was recorded of a stream */
struct cuda_graph_exec; /* the same, ready to be launched */

struct cuda_uuid {
    char bytes[16];
};

/* What lets another process open memory of a device. */
struct cuda_ipc_handle {
    char bytes[64];
};

#define CUDA_DRIVER_CALLS(CALL)                                                                 \
    CALL(init, cuInit, (unsigned flags))                                                        \
    CALL(version, cuDriverGetVersion, (int *ret))                                               \
    CALL(error_name, cuGetErrorName, (int result, const char **ret))                            \
    CALL(error_text, cuGetErrorString, (int result, const char **ret))                          \
    CALL(device_count, cuDeviceGetCount, (int *ret))                                            \
    CALL(device_get, cuDeviceGet, (cuda_device * ret, int ordinal))                             \
    CALL(device_name, cuDeviceGetName, (char *ret, int len, cuda_device d))                     \
    CALL(device_uuid, cuDeviceGetUuid, (struct cuda_uuid * ret, cuda_device d))                 \
    CALL(device_attribute, cuDeviceGetAttribute, (int *ret, int attribute, cuda_device d))      \
    CALL(device_bytes, cuDeviceTotalMem_v2, (size_t * ret, cuda_device d))                      \
    CALL(device_reaches, cuDeviceCanAccessPeer, (int *ret, cuda_device d, cuda_device peer))    \
    CALL(context_retain, cuDevicePrimaryCtxRetain, (struct cuda_context * *ret, cuda_device d)) \
    CALL(context_release, cuDevicePrimaryCtxRelease_v2, (cuda_device d))                        \
    CALL(context_push, cuCtxPushCurrent_v2, (struct cuda_context * c))                          \
    CALL(context_pop, cuCtxPopCurrent_v2, (struct cuda_context * *ret))                         \
    CALL(context_sync, cuCtxSynchronize, (void))                                                \
    CALL(context_reach, cuCtxEnablePeerAccess, (struct cuda_context * peer, unsigned flags))    \
    CALL(memory_info, cuMemGetInfo_v2, (size_t * ret_free, size_t * ret_total))                 \
    CALL(memory_alloc, cuMemAlloc_v2, (cuda_address * ret, size_t bytes))                       \
    CALL(memory_free, cuMemFree_v2, (cuda_address a))                                           \
    CALL(memory_range, cuMemGetAddressRange_v2,                                                 \
         (cuda_address * ret_base, size_t * ret_bytes, cuda_address a))                         \
    CALL(host_alloc, cuMemHostAlloc, (void **ret, size_t bytes, unsigned flags))                \
    CALL(host_free, cuMemFreeHost, (void *p))                                                   \
    CALL(copy, cuMemcpyAsync,                                                                   \
         (cuda_address to, cuda_address from, size_t bytes, struct cuda_stream * s))            \
    CALL(copy_out, cuMemcpyDtoH_v2, (void *to, cuda_address from, size_t bytes))                \
    CALL(fill, cuMemsetD8Async,                                                                 \
         (cuda_address to, unsigned char value, size_t bytes, struct cuda_stream *s))           \
    CALL(stream_new, cuStreamCreate, (struct cuda_stream * *ret, unsigned flags))               \
    CALL(stream_range, cuCtxGetStreamPriorityRange, (int *ret_least, int *ret_greatest))        \
    CALL(stream_new_at, cuStreamCreateWithPriority,                                             \
         (struct cuda_stream * *ret, unsigned flags, int priority))                             \
    CALL(stream_free, cuStreamDestroy_v2, (struct cuda_stream * s))                             \
    CALL(stream_sync, cuStreamSynchronize, (struct cuda_stream * s))                            \
    CALL(stream_wait, cuStreamWaitEvent,                                                        \
         (struct cuda_stream * s, struct cuda_event * e, unsigned flags))                       \
    CALL(record_begin, cuStreamBeginCapture_v2, (struct cuda_stream * s, int mode))             \
    CALL(record_end, cuStreamEndCapture, (struct cuda_stream * s, struct cuda_graph * *ret))    \
    CALL(graph_ready, cuGraphInstantiateWithFlags,                                              \
         (struct cuda_graph_exec * *ret, struct cuda_graph * g, unsigned long long flags))      \
    CALL(graph_free, cuGraphDestroy, (struct cuda_graph * g))                                   \
    CALL(graph_launch, cuGraphLaunch, (struct cuda_graph_exec * e, struct cuda_stream * s))     \
    CALL(graph_exec_free, cuGraphExecDestroy, (struct cuda_graph_exec * e))                     \
    CALL(event_new, cuEventCreate, (struct cuda_event * *ret, unsigned flags))                  \
    CALL(event_free, cuEventDestroy_v2, (struct cuda_event * e))                                \
    CALL(event_record, cuEventRecord, (struct cuda_event * e, struct cuda_stream * s))          \
    CALL(event_sync, cuEventSynchronize, (struct cuda_event * e))                               \
    CALL(ipc_get, cuIpcGetMemHandle, (struct cuda_ipc_handle * ret, cuda_address a))            \
    CALL(ipc_open, cuIpcOpenMemHandle_v2,                                                       \
         (cuda_address * ret, struct cuda_ipc_handle h, unsigned flags))                        \
    CALL(ipc_close, cuIpcCloseMemHandle, (cuda_address a))

#define CUDA_DRIVER_MEMBER(member, symbol, parameters) int(*member) parameters;
struct cuda_driver {
    CUDA_DRIVER_CALLS(CUDA_DRIVER_MEMBER)
};
#undef CUDA_DRIVER_MEMBER

/* A row of cuda_driver_symbols: where the address of a symbol goes in struct cuda_driver. */
struct cuda_driver_symbol {
    const char *name;
    size_t offset;
};

#define CUDA_DRIVER_SYMBOL(member, symbol, parameters) \
    {#symbol, offsetof(struct cuda_driver, member)},
/* CUDA_DRIVER_SYMBOLS - the initialiser of an array of struct cuda_driver_symbol. */
#define CUDA_DRIVER_SYMBOLS                   \
    {                                         \
        CUDA_DRIVER_CALLS(CUDA_DRIVER_SYMBOL) \
    }

/* cuda_driver_fill - look up all functions in the library, which is open.
 * returns  the symbol that it lacks; NULL = it has all */
static inline const char *cuda_driver_fill(struct cuda_driver *d, void *library)
{
    static const struct cuda_driver_symbol symbols[] = CUDA_DRIVER_SYMBOLS;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address)
            return symbols[i].name;
        memcpy((char *)d + symbols[i].offset, &address, sizeof address);
    }
    return NULL;
}

#endif
