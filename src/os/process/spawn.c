#include "os/process/spawn.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

char *const *spawn_environment(void)
{
    return environ;
}

static int set_actions(posix_spawn_file_actions_t *a, int control_fd)
{
    int rc = posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(a, control_fd, SPAWN_CONTROL_FD);
    if (!rc)
        rc = posix_spawn_file_actions_addclosefrom_np(a, SPAWN_CONTROL_FD + 1);
    return rc;
}

static int set_attributes(posix_spawnattr_t *a)
{
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setflags(a, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                             POSIX_SPAWN_SETSIGDEF);
    if (!rc)
        rc = posix_spawnattr_setpgroup(a, 0);
    if (!rc)
        rc = posix_spawnattr_setsigmask(a, &none);
    if (!rc)
        rc = posix_spawnattr_setsigdefault(a, &all);
    return rc;
}

struct err *spawn_start(const char *program, const char *const *argv, const char *const *env,
                        int control_fd, struct spawn *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int rc = fault_hit() ? EAGAIN : set_actions(&actions, control_fd);
    if (!rc)
        rc = set_attributes(&attributes);
    pid_t pid = 0;
    if (!rc)
        rc = posix_spawn(&pid, program, &actions, &attributes, (char *const *)(uintptr_t)argv,
                         (char *const *)(uintptr_t)env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (rc)
        return err_recode(err_errno(rc, "starting the process '%s'", program), STATUS_INTERNAL);
    *ret = (struct spawn){.pid = pid, .pidfd = pidfd_open(pid, 0)};
    return NULL;
}

bool spawn_wait(const struct spawn *s, time_ns until)
{
    for (;;) {
        time_ns now = clock_now_ns();
        time_ns left = until > now ? (until - now) / TIME_MS(1) + 1 : 0;
        int ms = left > 1000 ? 1000 : (int)left;
        if (s->pidfd >= 0) {
            struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
            if (poll(&p, 1, ms) > 0)
                return true;
        } else {
            siginfo_t info = {0};
            if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid)
                return true;
            poll(NULL, 0, ms < 5 ? ms : 5);
        }
        if (!left)
            return false;
    }
}

/* Kills the group. As long as the process is not reaped, no other process can get its number or
 * that of its group; but a host program may have reaped it. */
static void kill_group(const struct spawn *s)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        kill(-s->pid, SIGKILL);
}

void spawn_kill(const struct spawn *s)
{
    kill_group(s);
    if (s->pidfd >= 0)
        pidfd_send_signal(s->pidfd, SIGKILL, NULL, 0);
}

int spawn_reap(struct spawn *s)
{
    kill_group(s);
    int status = -1;
    while (waitpid(s->pid, &status, 0) < 0) {
        if (errno == EINTR)
            continue;
        status = -1;
        break;
    }
    if (s->pidfd >= 0)
        close(s->pidfd);
    s->pidfd = -1;
    return status;
}

void spawn_tell(struct strbuf *sb, int status)
{
    if (status == -1)
        strbuf_puts(sb, "unknown status");
    else if (WIFSIGNALED(status))
        strbuf_printf(sb, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        strbuf_printf(sb, "exit status %d", WEXITSTATUS(status));
}

void spawn_die_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void spawn_print_to(int fd)
{
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
}

void spawn_end_group(void)
{
    if (getpgrp() == getpid())
        kill(0, SIGKILL);
    _exit(1);
}
