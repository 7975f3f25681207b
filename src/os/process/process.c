#include "os/process/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The number after "key" at the start of a line of a /proc file; 0 if there is none. */
static uint64_t proc_field(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    char line[256];
    uint64_t n = 0;
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%" SCNu64, &n) == 1)
            break;
    fclose(f);
    return n;
}

static void read_cpu_ticks(struct process_stats *s)
{
    FILE *f = fopen("/proc/stat", "re");
    uint64_t t[8] = {0};
    if (!f)
        return;
    if (fscanf(f,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) == 8) {
        for (int i = 0; i < 8; i++)
            s->host_total_ticks += t[i];
        /* without idle time and waiting for a disk */
        s->host_busy_ticks = s->host_total_ticks - t[3] - t[4];
    }
    fclose(f);
}

static uint64_t count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;
    if (!dir)
        return 0;
    const struct dirent *d;
    while ((d = readdir(dir)))
        n += d->d_name[0] != '.';
    closedir(dir);
    return n ? n - 1 : 0; /* without the descriptor of this listing */
}

struct process_fds process_fds(void)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return (struct process_fds){.open = count_fds(), .max = limited ? limit.rlim_cur : UINT64_MAX};
}

void process_read(struct process_stats *ret)
{
    struct process_stats s = {0};
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    s.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    s.resident_bytes = proc_field("/proc/self/status", "VmRSS:") * 1024;
    s.virtual_bytes = proc_field("/proc/self/status", "VmSize:") * 1024;
    s.threads = proc_field("/proc/self/status", "Threads:");
    s.host_total_bytes = proc_field("/proc/meminfo", "MemTotal:") * 1024;
    s.host_used_bytes = s.host_total_bytes - proc_field("/proc/meminfo", "MemAvailable:") * 1024;
    struct process_fds fds = process_fds();
    s.open_fds = fds.open;
    s.max_fds = fds.max;
    read_cpu_ticks(&s);
    *ret = s;
}
