#pragma once
/* Binds the calling thread to cores, and its memory to a NUMA node. Threads that it starts
 * inherit both. */
#include <stdbool.h>

#define CPU_BIND_CORES 1024 /* core numbers are smaller than this */

struct cpu_bind;

/* cpu_bind_save - the current binding of the calling thread; owned by the caller. Never NULL. */
struct cpu_bind *cpu_bind_save(void);

/* cpu_bind_restore - restore the binding, on the thread on which it was saved, and free it. NULL
 * is fine. */
void cpu_bind_restore(struct cpu_bind *was);

/* cpu_bind_cores - run only on these cores; cores that the machine or the process does not have
 * are ignored.
 * returns  0, or an errno: EINVAL if no core is left; nothing has changed then */
int cpu_bind_cores(const bool cores[CPU_BIND_CORES]);

/* cpu_bind_memory - allocate memory only on this NUMA node.
 * returns  0, or an errno: EINVAL if there is no such node; EPERM or ENOSYS if choosing is not
 *          allowed */
int cpu_bind_memory(int node);
