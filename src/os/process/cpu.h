#pragma once
/* What of the machine this process may use: affinity and the limits of its control groups
 * (os/process/cgroup.h). */
#include <stddef.h>

/* cpu_count - cores that the process may keep busy, at least 1. */
unsigned cpu_count(void);

/* cpu_memory_limit - bytes of memory that the process may use: the machine's, or less when its
 * cgroup says so. */
size_t cpu_memory_limit(void);
