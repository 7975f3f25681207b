#include "os/process/cpu.h"

#include "os/process/cgroup.h"

#include <sched.h>
#include <unistd.h>

unsigned cpu_count(void)
{
    struct cgroup_limits limits;
    cpu_set_t set;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cores = CPU_COUNT(&set);
    cgroup_read("", &limits);
    unsigned n = cores > 0 ? (unsigned)cores : 1;
    return limits.cores && limits.cores < n ? limits.cores : n;
}

size_t cpu_memory_limit(void)
{
    struct cgroup_limits limits;
    size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    cgroup_read("", &limits);
    return limits.memory_bytes && limits.memory_bytes < machine ? limits.memory_bytes : machine;
}
