#pragma once
/* Child processes: a program of the server with one descriptor, in its own process group.
 * Signals and other children of the host program are not touched. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <sys/types.h>

struct strbuf;

#define SPAWN_CONTROL_FD 3 /* its number in the child */

struct spawn {
    pid_t pid;
    int pidfd; /* readable when the process has ended; -1 = not supported by the system */
};

/* spawn_environment - this process's environment: "NAME=value" strings, then NULL. */
char *const *spawn_environment(void);

/* spawn_start - run a program. Its standard input is empty, its output and error are those of
 * this process, and control_fd becomes SPAWN_CONTROL_FD. It inherits no other descriptor and no
 * blocked signal.
 * argv, env  end in NULL; env is its whole environment
 * errors  INTERNAL with the program's name */
struct err *spawn_start(const char *program, const char *const *argv, const char *const *env,
                        int control_fd, struct spawn *ret);

/* spawn_wait - wait until the process has ended, at most until `until`; does not reap it.
 * Returns true if it has ended. */
bool spawn_wait(const struct spawn *s, time_ns until);

/* spawn_kill - kill the process and its group. Call it before spawn_reap. */
void spawn_kill(const struct spawn *s);

/* spawn_reap - after the process has ended: kill the rest of its group, and reap it.
 * returns  the status as from wait(2); -1 if somebody else reaped it */
int spawn_reap(struct spawn *s);

/* spawn_tell - "signal 11 (Segmentation fault)", "exit status 7". */
void spawn_tell(struct strbuf *sb, int status);

/* spawn_die_with_parent - called in the child: this process ends when the thread that started it
 * ends. */
void spawn_die_with_parent(void);

/* spawn_print_to - send standard output and error to fd from here on; the caller keeps fd. */
void spawn_print_to(int fd);

/* spawn_end_group - kill this process and its group at once. */
__attribute__((noreturn)) void spawn_end_group(void);
