#pragma once
/* A stand-in for CUDA's driver: a library of the same name without a GPU. Addresses of device
 * memory cannot be touched, and what a stream was told to do is done only when somebody waits for
 * it, so that a missing wait or a wrong access shows. It knows nothing of speed.
 *
 * NEREID_CUDA_DEVICES  devices, parted by commas, each MAJOR.MINOR[:MIB] (default "8.0:256");
 *                      "" = none
 * NEREID_CUDA_FAIL     calls that fail, parted by commas, each SYMBOL:N=RESULT for the N-th call,
 *                      or SYMBOL:N+=RESULT for that and all later ones
 * NEREID_CUDA_GATE     a call that takes as long as a test wants, SYMBOL:N=PIPE: the N-th waits until
 *                      the named pipe was opened for writing, and closed
 * NEREID_CUDA_REPORT   file to which every process appends one line of JSON at its end:
 *                      what still lived, what was done wrong, how often each function was called */
#include "nereid/cuda_driver.h"

#include <stdbool.h>
#include <stdio.h>

#define STANDIN_DEVICES 16

#define STANDIN_CALL(member, symbol, parameters) STANDIN_##symbol,
enum standin_call { CUDA_DRIVER_CALLS(STANDIN_CALL) STANDIN_CALLS };
#undef STANDIN_CALL

#define STANDIN_DECLARE(member, symbol, parameters) \
    __attribute__((visibility("default"))) int symbol parameters;
CUDA_DRIVER_CALLS(STANDIN_DECLARE)
#undef STANDIN_DECLARE

/* What is counted while it lives. */
enum standin_kind {
    STANDIN_MEMORY,
    STANDIN_HOST,
    STANDIN_STREAM,
    STANDIN_EVENT,
    STANDIN_GRAPH, /* and those that are ready to be launched */
    STANDIN_CONTEXT,
    STANDIN_IPC,
    STANDIN_PUSHED, /* contexts, on any thread */
    STANDIN_KINDS,
};

/* standin_begin - a call begins: count it, and take the lock. Returns the result with which it is
 *                 to fail, without the lock then; 0 = go on.
 * standin_end - give the lock back; returns `result`. */
int standin_begin(enum standin_call call);
int standin_end(int result);

/* standin_live - one more or one less lives. Under the lock, like everything below. */
void standin_live(enum standin_kind kind, int change);

/* standin_wrong - note something that a program must not do. Returns `result`. */
__attribute__((format(printf, 2, 3))) int standin_wrong(int result, const char *fmt, ...);

/* standin_ready - 0 if cuInit was called. */
int standin_ready(void);

/* standin_recording - what disturbs a recording of this thread was called: the recording is spoilt.
 * Returns 0 if there is none, else the result of the call. */
int standin_recording(void);

/* Devices: standin_device.c. */
struct standin_device {
    int major, minor;
    size_t bytes, used;
    unsigned retained; /* the primary context */
    bool reaches[STANDIN_DEVICES];
};

struct cuda_context {
    struct standin_device *device;
};

int standin_device_count(void);
struct standin_device *standin_device(int id);
int standin_device_id(const struct standin_device *d);

/* standin_current - the device of the calling thread's context; NULL, with *ret_result set, if
 * there is none. */
struct standin_device *standin_current(int *ret_result);

/* Memory: standin_memory.c. */
struct standin_block;

/* standin_resolve - where `bytes` at an address really lie: host addresses are themselves.
 * ret_block  of device memory; NULL = of the host
 * returns    NULL for an address of a device that was not allocated as far */
void *standin_resolve(cuda_address a, size_t bytes, struct standin_block **ret_block);

/* standin_block_use - an operation that will use the block was queued (+1), or was done (-1). */
void standin_block_use(struct standin_block *b, int change);

/* What C tests call, found with dlsym.
 * nereid_standin_plan - as NEREID_CUDA_FAIL, from now on; counts of calls begin again.
 * nereid_standin_count - how many of a kind live ("memory", "host", "stream", "event", "graph",
 *                        "context", "ipc", "pushed"), or "wrong": what was done wrong; or calls of a symbol. */
__attribute__((visibility("default"))) void nereid_standin_plan(const char *plan);
__attribute__((visibility("default"))) long nereid_standin_count(const char *what);
