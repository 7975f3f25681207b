#include "os/process/cpu_bind.h"

#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_NODES  1024
#define WORD_BITS  (8 * sizeof(unsigned long))
#define NODE_WORDS (MAX_NODES / WORD_BITS)

struct cpu_bind {
    bool has_cores;
    bool has_memory;
    cpu_set_t cores;
    int mode;
    unsigned long nodes[NODE_WORDS];
};

static int cpu_bind_set_memory(int mode, const unsigned long *nodes)
{
    if (fault_hit())
        return EPERM;
    return syscall(SYS_set_mempolicy, mode, nodes, nodes ? (unsigned long)MAX_NODES : 0) ? errno
                                                                                         : 0;
}

struct cpu_bind *cpu_bind_save(void)
{
    struct cpu_bind *was = MEM_NEW(struct cpu_bind);
    was->has_cores = sched_getaffinity(0, sizeof(was->cores), &was->cores) == 0;
    was->has_memory = syscall(SYS_get_mempolicy, &was->mode, was->nodes, (unsigned long)MAX_NODES,
                              NULL, 0UL) == 0;
    return was;
}

/* Errors are ignored: nothing can be done if the system no longer accepts the old binding. */
void cpu_bind_restore(struct cpu_bind *was)
{
    if (!was)
        return;
    if (was->has_cores)
        (void)sched_setaffinity(0, sizeof(was->cores), &was->cores);
    if (was->has_memory)
        (void)cpu_bind_set_memory(was->mode, was->mode == MPOL_DEFAULT ? NULL : was->nodes);
    mem_free(was);
}

int cpu_bind_cores(const bool cores[CPU_BIND_CORES])
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < CPU_BIND_CORES; i++)
        if (cores[i])
            CPU_SET(i, &set);
    if (fault_hit())
        return EPERM;
    return sched_setaffinity(0, sizeof(set), &set) ? errno : 0;
}

int cpu_bind_memory(int node)
{
    if (node < 0 || node >= MAX_NODES)
        return EINVAL;
    unsigned long nodes[NODE_WORDS] = {0};
    nodes[(size_t)node / WORD_BITS] = 1UL << ((size_t)node % WORD_BITS);
    return cpu_bind_set_memory(MPOL_BIND, nodes);
}
