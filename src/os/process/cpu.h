#pragma once
/* The part of the machine that this process may use: CPU affinity and the limits of its control
 * groups (os/process/cgroup.h). */
#include <stddef.h>

/* cpu_count - number of cores that the process may use, at least 1. */
unsigned cpu_count(void);

/* cpu_memory_limit - bytes of memory that the process may use: those of the machine, or the
 * limit of its control groups. */
size_t cpu_memory_limit(void);
