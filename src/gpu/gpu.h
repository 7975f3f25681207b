#pragma once
/* The GPUs of the machine, by CUDA's driver. The library is opened when somebody first asks for
 * GPUs; a server that nobody asks has none and pays nothing. Process-wide; any thread. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cuda_driver;
struct dl;

/* GPUs that are used; further ones are passed over. */
#define GPU_MAX 64

/* The reference's lowest compute capability. */
#define GPU_CAPABILITY 6.0

struct gpu_device {
    int32_t id; /* CUDA's ordinal: CUDA_VISIBLE_DEVICES is the driver's own affair */
    int major;  /* compute capability */
    int minor;
    uint64_t bytes; /* of its memory */
    char name[96];
    char uuid[48]; /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
};

/* What the driver shows. It never changes once it was asked for, until gpu_close. */
struct gpu_list {
    const char *absence; /* why there is no GPU; NULL = there is one */
    int version;         /* of the driver's interface: 12040 = 12.4; 0 = no driver */
    struct gpu_device devices[GPU_MAX];
    size_t count;
    double least; /* compute capability of those that are used, as gpu_open was told */
    int32_t usable[GPU_MAX];
    size_t usable_count;
};

/* gpu_open - a server begins: GPUs of less than this compute capability are not to be used. The
 *            first server of the process decides. Opens nothing yet.
 * gpu_close - that server has ended. The last one gives back everything that was taken of the
 *             driver, so nobody may use memory, streams or contexts of gpu_ afterwards. */
void gpu_open(double least_capability);
void gpu_close(void);

/* gpu_look - the GPUs; opens the driver if nobody has. May take a second where there is one, and
 * some ten microseconds once where there is none. Never NULL. */
const struct gpu_list *gpu_look(void);

/* gpu_tell_failure - for who goes on without GPUs: if a driver is there and fails, a warning in
 * the log says how, once. Nothing where there is no driver, or no device. After gpu_look. */
void gpu_tell_failure(void);

/* gpu_at - the device with this id; NULL if there is none. */
const struct gpu_device *gpu_at(int64_t id);

/* gpu_driver - CUDA's functions, for a caller that found a GPU; NULL without one. They need a
 * current context, which gpu_enter sets. */
const struct cuda_driver *gpu_driver(void);

/* gpu_enter - make the primary context of a GPU the calling thread's current one, until
 * gpu_leave. The context that the thread had comes back, so a backend's own is undisturbed.
 * errors  INVALID_ARG if there is no such GPU; those of gpu_check */
struct err *gpu_enter(int64_t id);
void gpu_leave(void);

/* gpu_check - the error for what a function of the driver returned; NULL for success.
 * what    names the call and the thing: "allocating 16 bytes on GPU 0"
 * errors  UNAVAILABLE if memory is spent, else INTERNAL; both with CUDA's name and text */
__attribute__((format(printf, 2, 3))) struct err *gpu_check(int result, const char *what, ...);
