/* The server reads the same files for its own limits (src/os/process/cgroup.c). Backends also
 * run in other servers and cannot use src/, and the server does not use backends/. Two short
 * readers are simpler than a shared library. */
#include "cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

static int allowed(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

/* Reads up to two numbers from a file; "max" means no limit and ends the reading.
 * returns  how many were read */
static int cpus_read_numbers(const char *path, long long numbers[2])
{
    char line[64] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    char *at = fgets(line, sizeof line, file);
    fclose(file);
    int found = 0;
    while (at && found < 2) {
        char *end;
        numbers[found] = strtoll(at, &end, 10);
        if (end == at)
            break;
        found++;
        at = end;
    }
    return found;
}

static int lower(int cpus, long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return cpus;
    long long bound = (quota_us + period_us - 1) / period_us;
    return bound < cpus ? (int)bound : cpus;
}

static int quota_v2(const char *group, int cpus)
{
    char path[PATH_SIZE + 64];
    long long limit[2];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    return cpus_read_numbers(path, limit) == 2 ? lower(cpus, limit[0], limit[1]) : cpus;
}

static int quota_v1(const char *group, int cpus)
{
    char path[PATH_SIZE + 64];
    long long quota[2], period[2];
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", group);
    if (!cpus_read_numbers(path, quota))
        return cpus;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", group);
    return cpus_read_numbers(path, period) ? lower(cpus, quota[0], period[0]) : cpus;
}

/* Applies a quota to a group and to all groups above it. */
static int cpus_climb(char *group, int cpus, int (*quota)(const char *, int))
{
    for (;;) {
        cpus = quota(group, cpus);
        char *slash = strrchr(group, '/');
        if (!slash)
            return cpus;
        *slash = '\0';
    }
}

int cpus_usable(void)
{
    int cpus = allowed();
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return cpus;
    char line[PATH_SIZE];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        if (*controllers == '\0')
            cpus = cpus_climb(group, cpus, quota_v2);
        else if (strcmp(controllers, "cpu") == 0 || strncmp(controllers, "cpu,", 4) == 0 ||
                 strstr(controllers, ",cpu,") || strstr(controllers, "cpuacct,cpu"))
            cpus = cpus_climb(group, cpus, quota_v1);
    }
    fclose(file);
    return cpus;
}
