#pragma once
/* What the process's control groups let it have: its own and all around it, versions 1 and 2.
 * Blocks; at the start. */
#include <stddef.h>

struct cgroup_limits {
    size_t memory_bytes; /* 0 = no limit */
    unsigned cores;      /* that the CPU quota amounts to, rounded up; 0 = no quota */
};

/* cgroup_read - the smallest limits from the process's own group up to the topmost that can be
 * seen.
 * root  in front of /proc/self/cgroup and /sys/fs/cgroup: "" but in tests
 * ret   zeros where nothing can be read */
void cgroup_read(const char *root, struct cgroup_limits *ret);
