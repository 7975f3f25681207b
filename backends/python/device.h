#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nereid/cuda_driver.h"

/* What either side does with the memory of a GPU by CUDA's driver, which is opened when this is
 * asked for first. Any thread. */

enum device_what {
    DEVICE_SETTLE, /* wait until nothing is on its way there, by whatever stream of this process */
    DEVICE_FETCH,  /* the same, and copy to memory of the host */
    DEVICE_SHARE,  /* make a handle of memory, for another process */
    DEVICE_OPEN,   /* have the memory of such a handle here; its context stays until DEVICE_CLOSE */
    DEVICE_CLOSE,
};

struct device_task {
    enum device_what what;
    int32_t device;
    cuda_address from;             /* all but OPEN, which sets it */
    void *to;                      /* FETCH */
    uint64_t bytes;                /* FETCH */
    struct cuda_ipc_handle handle; /* SHARE sets it; OPEN */
    uint64_t offset;               /* SHARE sets it: of `from` within the handle's memory */
    const char *failed;            /* set: the call that failed; NULL = none */
    int result;                    /* set: what that returned */
};

/* device_do - returns false where something failed. */
bool device_do(struct device_task *task);

/* device_said - which GPU, and what failed. */
void device_said(const struct device_task *task, char *text, size_t bytes);
