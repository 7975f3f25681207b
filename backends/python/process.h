#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "triton/core/tritonserver.h"

/* Processes of the backend. */

enum { PROCESS_GIVEN = 3 };

/* process_start - start a program in a process group of its own, with three descriptors as 3, 4 and
 * 5, and no others but the standard ones.
 * argv     argv[0] is looked for in the PATH; NULL at the end
 * given    PROCESS_GIVEN descriptors above 9, or NULL
 * errors   INTERNAL naming the program */
TRITONSERVER_Error *process_start(const char *const *argv, const int *given, pid_t *ret_pid);

/* process_run - start a program and wait for its end.
 * errors   INTERNAL naming the program, when it ended with another status than 0 */
TRITONSERVER_Error *process_run(const char *const *argv);

/* process_kill - end a process and all of its group; it is not waited for. */
void process_kill(pid_t pid);

/* process_end - the same, and wait for the process. */
void process_end(pid_t pid);

/* process_is_stopped - whether a signal has stopped it. */
bool process_is_stopped(pid_t pid);

/* process_read - copy memory of a process that this one started.
 * returns  false: it cannot be read */
bool process_read(pid_t pid, uint64_t address, void *to, size_t bytes);
