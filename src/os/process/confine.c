#include "os/process/confine.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <unistd.h>

struct err *confine_privileges(void)
{
    int rc = fault_hit() ? (errno = EINVAL, -1) : prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return rc == 0 ? NULL
                   : err_recode(err_errno(errno, "giving up new privileges"), STATUS_UNSUPPORTED);
}

/* ---- Another user */

static bool confine_read_id(const char *text, uint32_t *ret)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end || errno || *text == '-' || n >= UINT32_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}

static bool find_group(const char *text, uint32_t *ret)
{
    struct group one, *found = NULL;
    char room[16384];
    if (confine_read_id(text, ret))
        return true;
    if (getgrnam_r(text, &one, room, sizeof(room), &found) != 0 || !found)
        return false;
    *ret = found->gr_gid;
    return true;
}

static bool find_user(const char *text, uint32_t *ret_user, uint32_t *ret_group)
{
    struct passwd one, *found = NULL;
    char room[16384];
    if (confine_read_id(text, ret_user)) {
        *ret_group = *ret_user;
        return true;
    }
    if (getpwnam_r(text, &one, room, sizeof(room), &found) != 0 || !found)
        return false;
    *ret_user = found->pw_uid;
    *ret_group = found->pw_gid;
    return true;
}

struct err *confine_find_user(const char *text, uint32_t *ret_user, uint32_t *ret_group)
{
    char user[256];
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (len && len < sizeof(user)) {
        memcpy(user, text, len);
        user[len] = '\0';
        if (find_user(user, ret_user, ret_group) && (!colon || find_group(colon + 1, ret_group)))
            return NULL;
    }
    return err_new(STATUS_INVALID_ARG,
                   "expected a user, or a user and a group as USER:GROUP, by name or number; "
                   "found '%s'",
                   text);
}

struct err *confine_user(uint32_t user, uint32_t group)
{
    bool is_other = user != geteuid() || group != getegid();
    if (is_other && (setgroups(0, NULL) != 0 || setresgid(group, group, group) != 0 ||
                     setresuid(user, user, user) != 0))
        return err_recode(err_errno(errno,
                                    "becoming user %u of group %u, which needs the capabilities "
                                    "CAP_SETUID and CAP_SETGID",
                                    user, group),
                          STATUS_UNSUPPORTED);
    /* The system resets both when a process changes its user. Set them again: the process ends
     * with its parent, and may read its own /proc entries. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return NULL;
}

/* ---- Files */

#define TO_READ \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE)
#define OF_FILES                                                                                 \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
     FS_TRUNCATE)

/* Newer than the oldest kernel headers that the build supports. */
#define FS_FIRST    ((UINT64_C(1) << 13) - 1) /* all rights of the first version */
#define FS_REFER    (UINT64_C(1) << 13)
#define FS_TRUNCATE (UINT64_C(1) << 14)
#define SCOPES      UINT64_C(3) /* abstract sockets, signals */

struct ruleset {
    uint64_t fs;
    uint64_t net;
    uint64_t scopes;
};

static uint64_t known_rights(long version)
{
    return FS_FIRST | (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0);
}

static int allow_path(int rules, const struct confine_path *p, uint64_t known)
{
    struct stat st;
    int fd = open(p->path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : -1;
    uint64_t rights = p->write ? known : TO_READ;
    if (fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rights &= OF_FILES;
    struct landlock_path_beneath_attr rule = {.allowed_access = rights & known, .parent_fd = fd};
    long rc = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(fd);
    return rc == 0 ? 0 : -1;
}

static int restrict_files(long version, const struct confine_path *paths, unsigned count)
{
    struct ruleset attr = {.fs = known_rights(version), .scopes = version >= 6 ? SCOPES : 0};
    size_t bytes = version >= 6 ? sizeof(attr) : sizeof(attr.fs);
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, bytes, 0);
    int rc = rules < 0 ? -1 : 0;
    for (unsigned i = 0; rc == 0 && i < count; i++)
        rc = allow_path(rules, &paths[i], attr.fs);
    if (rc == 0)
        rc = (int)syscall(SYS_landlock_restrict_self, rules, 0);
    int why = errno;
    if (rules >= 0)
        close(rules);
    errno = why;
    return rc;
}

struct err *confine_files(const struct confine_path *paths, unsigned count)
{
    long version =
        syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return err_recode(err_errno(errno, "this kernel does not confine files (Landlock)"),
                          STATUS_UNSUPPORTED);
    if (fault_hit() || restrict_files(version, paths, count) != 0)
        return err_recode(err_errno(errno, "confining files"), STATUS_UNSUPPORTED);
    return NULL;
}

/* ---- System calls */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif
#define FOREIGN 0x40000000u /* the calls of the x32 ABI begin here */

/* Calls that no model needs, or through which the kernel would act without the filter. */
static const uint32_t never[] = {
    SYS_io_uring_setup,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_reboot,
    SYS_swapon,
    SYS_settimeofday,
    SYS_setsid, /* a process that leaves its group would outlive the server */
    SYS_setpgid,
    SYS_clock_settime,
};

static const uint32_t network[] = {SYS_socket, SYS_connect, SYS_bind,
                                   SYS_listen, SYS_accept,  SYS_accept4};
static const uint32_t programs[] = {SYS_execve, SYS_execveat};

struct program {
    struct sock_filter code[128];
    unsigned short len;
};

static void confine_put(struct program *p, struct sock_filter one)
{
    p->code[p->len++] = one;
}

#define REFUSE (SECCOMP_RET_ERRNO | EACCES)

static void put_calls(struct program *p, const uint32_t *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        confine_put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1));
        confine_put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE));
    }
}

static void confine_load(struct program *p, size_t offset)
{
    confine_put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Allows pairs of stream sockets only: a datagram socket of a pair could send to other sockets. */
static void put_pairs(struct program *p)
{
    confine_put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 5));
    confine_load(p, offsetof(struct seccomp_data, args[1]));
    confine_put(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf));
    confine_put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 1, 0));
    confine_put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_RAW, 0, 1));
    confine_put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE));
    confine_load(p, offsetof(struct seccomp_data, nr));
}

struct err *confine_calls(unsigned calls)
{
    struct program p = {.len = 0};
    confine_load(&p, offsetof(struct seccomp_data, arch));
    confine_put(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    confine_put(&p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    confine_load(&p, offsetof(struct seccomp_data, nr));
    confine_put(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN, 0, 1));
    confine_put(&p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    put_calls(&p, never, sizeof(never) / sizeof(never[0]));
    if (calls & CONFINE_PROGRAMS)
        put_calls(&p, programs, sizeof(programs) / sizeof(programs[0]));
    if (calls & CONFINE_NETWORK) {
        put_calls(&p, network, sizeof(network) / sizeof(network[0]));
        put_pairs(&p);
    }
    confine_put(&p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog filter = {.len = p.len, .filter = p.code};
    int rc = ARCH == 0 || fault_hit()
                 ? (errno = ENOSYS, -1)
                 : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
    return rc == 0 ? NULL
                   : err_recode(err_errno(errno, "this system does not confine system calls "
                                                 "(seccomp)"),
                                STATUS_UNSUPPORTED);
}
