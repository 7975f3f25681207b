/* os/process/cgroup: limits of the process's own group and of those around it, in trees that say
 * what a machine would. */
#include "os/process/cgroup.h"

#include "base/mem.h"
#include "os/process/cpu.h"
#include "os/files/tree.h"
#include "support/unit.h"

#include <string.h>

#define GIB ((size_t)1 << 30)

struct tree_file {
    const char *name;
    const char *text;
};

static void expect(const struct tree_file *files, size_t count, size_t memory, unsigned cores)
{
    char *root;
    struct cgroup_limits l;
    unit_succeeds(tree_make("cgroup", &root));
    for (size_t i = 0; i < count; i++)
        unit_succeeds(tree_write(root, files[i].name, files[i].text, strlen(files[i].text)));
    cgroup_read(root, &l);
    assert_int_equal(l.memory_bytes, memory);
    assert_int_equal(l.cores, cores);
    tree_remove(root);
    mem_free(root);
}

#define EXPECT(memory, cores, ...)                                      \
    do {                                                                \
        const struct tree_file files[] = {__VA_ARGS__};                 \
        expect(files, sizeof(files) / sizeof(files[0]), memory, cores); \
    } while (0)

/* A unit of systemd with MemoryMax=1G and CPUQuota=150%; the slice around it has other limits,
 * the topmost group none. */
static void of_a_service(void **state)
{
    (void)state;
    EXPECT(GIB, 2, {"proc/self/cgroup", "0::/system.slice/nereid.service\n"},
           {"sys/fs/cgroup/system.slice/nereid.service/memory.max", "1073741824\n"},
           {"sys/fs/cgroup/system.slice/nereid.service/cpu.max", "150000 100000\n"},
           {"sys/fs/cgroup/system.slice/memory.max", "8589934592\n"},
           {"sys/fs/cgroup/system.slice/cpu.max", "max 100000\n"});
    EXPECT(2 * GIB, 1, {"proc/self/cgroup", "0::/a/b/c\n"},
           {"sys/fs/cgroup/a/b/c/memory.max", "max\n"},
           {"sys/fs/cgroup/a/b/c/cpu.max", "300000 100000"},
           {"sys/fs/cgroup/a/b/memory.max", "2147483648\n"},
           {"sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
           {"sys/fs/cgroup/a/memory.max", "4294967296\n"});
}

/* Its own group is the topmost that it sees, by a namespace or by what is mounted. */
static void of_a_container(void **state)
{
    (void)state;
    EXPECT(GIB, 4, {"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/memory.max", "1073741824\n"},
           {"sys/fs/cgroup/cpu.max", "400000 100000\n"});
    EXPECT(GIB, 0, {"proc/self/cgroup", "0::/docker/0123\n"},
           {"sys/fs/cgroup/memory.max", "1073741824\n"});
    EXPECT(GIB, 0, {"proc/self/cgroup", "0::/../../elsewhere\n"},
           {"sys/fs/cgroup/memory.max", "1073741824\n"}, {"elsewhere/memory.max", "1\n"});
}

static void of_version_1(void **state)
{
    (void)state;
    EXPECT(3 * GIB, 3,
           {"proc/self/cgroup", "12:pids:/p\n5:memory:/user/x\n4:cpu,cpuacct:/user\n2:cpuset:/y\n"},
           {"sys/fs/cgroup/memory/user/x/memory.limit_in_bytes", "9223372036854771712\n"},
           {"sys/fs/cgroup/memory/user/memory.limit_in_bytes", "3221225472\n"},
           {"sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_quota_us", "250000\n"},
           {"sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_period_us", "100000\n"},
           {"sys/fs/cgroup/cpuset/y/cpu.cfs_quota_us", "1\n"},
           {"sys/fs/cgroup/cpuset/y/cpu.cfs_period_us", "1\n"});
    EXPECT(0, 1, {"proc/self/cgroup", "4:cpuacct,cpu:/\n"},
           {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "1000\n"},
           {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"});
    EXPECT(0, 0, {"proc/self/cgroup", "4:cpu:/\n3:memory:/\n"},
           {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
           {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
           {"sys/fs/cgroup/memory/memory.limit_in_bytes", "-1\n"});
}

static void of_nothing_that_can_be_read(void **state)
{
    (void)state;
    EXPECT(0, 0, {"proc/self/other", ""});
    EXPECT(0, 0, {"proc/self/cgroup", "no colon\n:\n0:\n0::\n0::/gone\n"},
           {"sys/fs/cgroup/memory.max", ""}, {"sys/fs/cgroup/cpu.max", "many\n"});
    EXPECT(0, 0, {"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/memory.max", "0\n"},
           {"sys/fs/cgroup/cpu.max", "0 0\n"});
    assert_true(cpu_count() >= 1);
    assert_true(cpu_memory_limit() > 0);
}

UNIT_MAIN(UNIT(of_a_service), UNIT(of_a_container), UNIT(of_version_1),
          UNIT(of_nothing_that_can_be_read))
