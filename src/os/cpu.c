#include "os/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first line of a small file; false when it cannot be read. */
static int read_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    int ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

/* Cores that the cgroup's quota amounts to, rounded up; 0 = no quota. A process in a container sees its own group at the root. */
static unsigned quota_cores(void)
{
    char line[128];
    long long quota = -1;
    long long period = 0;
    if (read_line("/sys/fs/cgroup/cpu.max", line, sizeof(line))) {
        if (sscanf(line, "%lld %lld", &quota, &period) != 2)
            return 0;
    } else if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof(line))) {
        quota = strtoll(line, NULL, 10);
        if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof(line)))
            period = strtoll(line, NULL, 10);
    }
    return quota > 0 && period > 0 ? (unsigned)((quota + period - 1) / period) : 0;
}

unsigned cpu_count(void)
{
    cpu_set_t set;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cores = CPU_COUNT(&set);
    unsigned quota = quota_cores();
    unsigned n = cores > 0 ? (unsigned)cores : 1;
    return quota && quota < n ? quota : n;
}

size_t cpu_memory_limit(void)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    size_t limit = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char line[64];
        if (!read_line(files[i], line, sizeof(line)) || strncmp(line, "max", 3) == 0)
            continue;
        unsigned long long bytes = strtoull(line, NULL, 10);
        if (bytes > 0 && bytes < limit)
            limit = bytes;
    }
    return limit;
}
