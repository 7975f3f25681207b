#pragma once
/* What the system knows about this process and its machine, for the metrics page. Each call
 * reads some files: not for the request path. */
#include <stdint.h>

struct process_stats {
    uint64_t cpu_ns; /* user and system time of all threads */
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    uint64_t threads;
    uint64_t open_fds;
    uint64_t max_fds; /* UINT64_MAX = no limit */
    uint64_t host_total_bytes;
    uint64_t host_used_bytes; /* total minus available */
    uint64_t host_busy_ticks; /* of all cores, since the machine started */
    uint64_t host_total_ticks;
};

struct process_fds {
    uint64_t open;
    uint64_t max; /* UINT64_MAX = no limit */
};

/* process_fds - number of descriptors; open is 0 if it cannot be read. */
struct process_fds process_fds(void);

/* process_read - values that cannot be read stay 0. */
void process_read(struct process_stats *ret);
