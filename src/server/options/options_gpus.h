#pragma once
/* Options of GPUs: the sizes of the pools of memory, which GPUs are used, and how full they may
 * be. */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX_GPUS 64

struct options;
struct options_row;

/* A number for one GPU. */
struct options_gpu_bytes {
    int32_t device;
    uint64_t bytes;
};

struct options_gpu_fraction {
    int32_t device;
    double fraction; /* from 0 to 1 */
};

struct options_gpus {
    double least_capability;
    uint64_t pinned_bytes;
    struct options_gpu_bytes pools[OPTIONS_MAX_GPUS];
    size_t pool_count;
    struct options_gpu_fraction limits[OPTIONS_MAX_GPUS];
    size_t limit_count;
};

/* options_gpus_set - set one of these options. What is given twice for a GPU: the later counts.
 * errors  INVALID_ARG that names the option, the value and the allowed values */
struct err *options_gpus_set(const struct options_row *row, const char *value, struct options *o);
