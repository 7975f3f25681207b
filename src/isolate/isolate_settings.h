#pragma once
/* What a configuration says about isolation: parameters of the model. Pure. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;

struct isolate_settings {
    bool wanted; /* ISOLATION: "process" */
    uint64_t
        memory_bytes; /* ISOLATION_MEMORY_MB: of shared memory, each way; 0 = the memory budget, at most 8 GiB */
    time_ns
        execute_ns; /* ISOLATION_EXECUTE_TIMEOUT_SECS: a longer Execute ends the process; 0 = no limit */
    time_ns
        grace_ns; /* ISOLATION_GRACE_SECS: how long a process may be silent that shall end; 5 s */
};

/* isolate_settings_read - the defaults, and what the parameters say.
 * errors  INVALID_ARG, naming the parameter */
struct err *isolate_settings_read(const struct Inference__ModelConfig *proto,
                                  struct isolate_settings *ret);
