#pragma once
/* Child processes: a program of ours with one descriptor, in a process group of its own. Nothing
 * here touches signals or other children of the host program. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <sys/types.h>

struct strbuf;

#define SPAWN_CONTROL_FD 3 /* in the child */

struct spawn {
    pid_t pid;
    int pidfd; /* readable when the process has ended; -1 = the system has none */
};

/* spawn_environment - ours, "NAME=value" each, NULL behind the last. */
char *const *spawn_environment(void);

/* spawn_start - run a program. Its standard input is empty, output and error are ours,
 * control_fd is SPAWN_CONTROL_FD; no other descriptor and no blocked signal is passed on.
 * argv, env  end in NULL; env is all that it gets
 * errors  INTERNAL with the program's name */
struct err *spawn_start(const char *program, const char *const *argv, const char *const *env,
                        int control_fd, struct spawn *ret);

/* spawn_wait - wait for its end, or until `until`; does not reap it. Returns whether it has
 * ended. */
bool spawn_wait(const struct spawn *s, time_ns until);

/* spawn_kill - end the process and all of its group. Before spawn_reap. */
void spawn_kill(const struct spawn *s);

/* spawn_reap - after its end: end what is left of its group, and forget the process.
 * returns  the status as of wait(2); -1 when somebody else took it */
int spawn_reap(struct spawn *s);

/* spawn_tell - "signal 11 (Segmentation fault)", "exit status 7". */
void spawn_tell(struct strbuf *sb, int status);

/* spawn_beside - the path of a program in ../bin of the directory that the library of `address`
 * lies in, or in the directory itself; the caller's (mem_free). NULL when it is not there. */
char *spawn_beside(const void *address, const char *program);

/* spawn_die_with_parent - in the child: the end of the thread that started this process ends it. */
void spawn_die_with_parent(void);

/* spawn_print_to - from here on standard output and error go to fd, which stays the caller's. */
void spawn_print_to(int fd);

/* spawn_end_group - end this process and its group at once. */
__attribute__((noreturn)) void spawn_end_group(void);
