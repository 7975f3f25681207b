#pragma once
/* The limits of the process's control groups: its own group and all groups above it, versions 1
 * and 2. Blocks; called at the start. */
#include <stddef.h>

struct cgroup_limits {
    size_t memory_bytes; /* 0 = no limit */
    unsigned cores;      /* the CPU quota as a number of cores, rounded up; 0 = no quota */
};

/* cgroup_read - the smallest limits of the process's own group and all visible groups above it.
 * root  prefix of /proc/self/cgroup and /sys/fs/cgroup: "" except in tests
 * ret   zeros if nothing can be read */
void cgroup_read(const char *root, struct cgroup_limits *ret);
