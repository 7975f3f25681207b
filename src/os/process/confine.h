#pragma once
/* Restricts what this process and its children may do. A restriction cannot be undone. Call
 * these while the process has one thread. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* confine_privileges - programs that this process starts get no additional rights. */
struct err *confine_privileges(void);

/* confine_find_user - find a user given as "NAME" or "UID", optionally with ":GROUP" as name or
 * number. A user given only by number has the group with the same number.
 * errors  INVALID_ARG: there is no such user or group */
struct err *confine_find_user(const char *text, uint32_t *ret_user, uint32_t *ret_group);

/* confine_user - become that user, with only that group. The process still ends with its parent.
 * errors  UNSUPPORTED: the process is not allowed to */
struct err *confine_user(uint32_t user, uint32_t group);

struct confine_path {
    const char *path;
    bool write;
};

/* confine_files - deny all files except these, and those below these directories; missing ones
 * are ignored. Processes outside cannot be signalled or traced.
 * errors  UNSUPPORTED: the kernel does not support it */
struct err *confine_files(const struct confine_path *paths, unsigned count);

enum confine_calls {
    CONFINE_NETWORK = 1,  /* no sockets except connected pairs */
    CONFINE_PROGRAMS = 2, /* no other program can be executed */
};

/* confine_calls - refuse system calls (EACCES): those in the set `calls`, and always those that
 * change the machine or access other processes.
 * errors  UNSUPPORTED: the kernel, or this build, does not support it */
struct err *confine_calls(unsigned calls);
