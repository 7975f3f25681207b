#include "os/process/cgroup.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES ((size_t)8192)

/* Reads up to two numbers from the beginning of a small file. "max" means no limit and ends the
 * reading. Returns how many were read. */
static unsigned cgroup_read_numbers(const char *dir, const char *file, long long numbers[2])
{
    struct strbuf path = STRBUF_INIT;
    char line[128] = "";
    strbuf_printf(&path, "%s/%s", dir, file);
    FILE *f = fopen(strbuf_str(&path), "re");
    strbuf_fini(&path);
    char *at = f ? fgets(line, sizeof(line), f) : NULL;
    if (f)
        fclose(f);
    unsigned found = 0;
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

static void lower_cores(struct cgroup_limits *l, long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return;
    long long cores = (quota_us - 1) / period_us + 1;
    if (cores < UINT_MAX && (!l->cores || cores < l->cores))
        l->cores = (unsigned)cores;
}

/* Ignores a limit that is larger than any machine: version 1 writes "no limit" that way. */
static void lower_memory(struct cgroup_limits *l, long long bytes)
{
    if (bytes > 0 && bytes < LLONG_MAX / 2 && (!l->memory_bytes || (size_t)bytes < l->memory_bytes))
        l->memory_bytes = (size_t)bytes;
}

static void take_v2(const char *dir, struct cgroup_limits *l)
{
    long long n[2];
    if (cgroup_read_numbers(dir, "cpu.max", n) == 2)
        lower_cores(l, n[0], n[1]);
    if (cgroup_read_numbers(dir, "memory.max", n))
        lower_memory(l, n[0]);
}

static void take_v1_cpu(const char *dir, struct cgroup_limits *l)
{
    long long quota[2];
    long long period[2];
    if (cgroup_read_numbers(dir, "cpu.cfs_quota_us", quota) &&
        cgroup_read_numbers(dir, "cpu.cfs_period_us", period))
        lower_cores(l, quota[0], period[0]);
}

static void take_v1_memory(const char *dir, struct cgroup_limits *l)
{
    long long n[2];
    if (cgroup_read_numbers(dir, "memory.limit_in_bytes", n))
        lower_memory(l, n[0]);
}

/* Reads a group below its mount, then every group above it. In a container the mount shows only
 * a part of the tree: the lower groups are missing, and the mount itself is the process's group. */
static void cgroup_climb(const char *mount, const char *group, struct cgroup_limits *l,
                         void (*take)(const char *dir, struct cgroup_limits *l))
{
    struct strbuf dir = STRBUF_INIT;
    strbuf_printf(&dir, "%s%s", mount, strstr(group, "/..") ? "" : group);
    char *path = strbuf_take(&dir);
    for (size_t least = strlen(mount);;) {
        take(path, l);
        char *slash = strrchr(path, '/');
        if (!slash || (size_t)(slash - path) < least)
            break;
        *slash = '\0';
    }
    mem_free(path);
}

static bool has_controller(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* Handles a line of /proc/self/cgroup: NUMBER:CONTROLLERS:GROUP; version 2 has no controllers. */
static void take_line(const char *root, char *line, struct cgroup_limits *l)
{
    struct strbuf mount = STRBUF_INIT;
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return;
    *group++ = '\0';
    controllers++;
    if (!*controllers) {
        strbuf_printf(&mount, "%s/sys/fs/cgroup", root);
        cgroup_climb(strbuf_str(&mount), group, l, take_v2);
    } else if (has_controller(controllers, "cpu")) {
        strbuf_printf(&mount, "%s/sys/fs/cgroup/%s", root, controllers);
        cgroup_climb(strbuf_str(&mount), group, l, take_v1_cpu);
        mount.len = 0;
        strbuf_printf(&mount, "%s/sys/fs/cgroup/cpu", root);
        cgroup_climb(strbuf_str(&mount), group, l, take_v1_cpu);
    } else if (has_controller(controllers, "memory")) {
        strbuf_printf(&mount, "%s/sys/fs/cgroup/memory", root);
        cgroup_climb(strbuf_str(&mount), group, l, take_v1_memory);
    }
    strbuf_fini(&mount);
}

void cgroup_read(const char *root, struct cgroup_limits *ret)
{
    struct strbuf path = STRBUF_INIT;
    *ret = (struct cgroup_limits){0};
    strbuf_printf(&path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(strbuf_str(&path), "re");
    strbuf_fini(&path);
    if (!f)
        return;
    char *line = mem_alloc(LINE_BYTES);
    while (fgets(line, LINE_BYTES, f))
        take_line(root, line, ret);
    mem_free(line);
    fclose(f);
}
