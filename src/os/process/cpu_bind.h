#pragma once
/* Where the calling thread runs, and where its memory comes from: cores and NUMA nodes. Threads
 * that it starts inherit both. */
#include <stdbool.h>

#define CPU_BIND_CORES 1024 /* cores have smaller numbers */

struct cpu_bind;

/* cpu_bind_save - what is in force for the calling thread; the caller's. Never NULL. */
struct cpu_bind *cpu_bind_save(void);

/* cpu_bind_restore - put it in force again, on the thread that it was saved on, and free it.
 * NULL is fine. */
void cpu_bind_restore(struct cpu_bind *was);

/* cpu_bind_cores - run on these cores only; those that the machine or the process lacks are
 * passed over.
 * returns  0, or an errno: EINVAL when none is left; nothing was changed then */
int cpu_bind_cores(const bool cores[CPU_BIND_CORES]);

/* cpu_bind_memory - take memory of this NUMA node only.
 * returns  0, or an errno: EINVAL when there is no such node; EPERM or ENOSYS where nobody may
 *          choose */
int cpu_bind_memory(int node);
