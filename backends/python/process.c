#include "process.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "common/berr.h"

extern char **environ;

enum { FIRST_GIVEN = 3 };

static int process_prepare(posix_spawnattr_t *attributes, posix_spawn_file_actions_t *actions,
                           const int *given)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                             POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    int failed = 0;
    for (int i = 0; given && i < PROCESS_GIVEN && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(actions, given[i], FIRST_GIVEN + i);
    int first = given ? FIRST_GIVEN + PROCESS_GIVEN : FIRST_GIVEN;
    return failed ? failed : posix_spawn_file_actions_addclosefrom_np(actions, first);
}

TRITONSERVER_Error *process_start(const char *const *argv, const int *given, pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    int failed = process_prepare(&attributes, &actions, given);
    if (!failed)
        failed = posix_spawnp(ret_pid, argv[0], &actions, &attributes,
                              (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "cannot start '%s': %s", argv[0],
                        strerror(failed));
    return NULL;
}

static int process_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

TRITONSERVER_Error *process_run(const char *const *argv)
{
    pid_t pid;
    TRITONSERVER_Error *err = process_start(argv, NULL, &pid);
    if (err)
        return err;
    int status = process_wait(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL, "'%s' ended with %s %d", argv[0],
                    WIFEXITED(status) ? "status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

void process_kill(pid_t pid)
{
    /* The leader is not waited for yet, so that its group's number is nobody else's. It may have
     * left its group. */
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
}

void process_end(pid_t pid)
{
    process_kill(pid);
    process_wait(pid);
}

bool process_is_stopped(pid_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file)
        fclose(file);
    line[length] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end && (name_end[2] == 'T' || name_end[2] == 't');
}

bool process_read(pid_t pid, uint64_t address, void *to, size_t bytes)
{
    char *at = to;
    while (bytes > 0) {
        struct iovec here = {.iov_base = at, .iov_len = bytes};
        struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
        ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (got <= 0)
            return false;
        at += got;
        address += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return true;
}
