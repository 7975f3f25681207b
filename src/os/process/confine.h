#pragma once
/* What this process and those that it starts may do from now on: none of it can be taken back.
 * For a process with one thread. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* confine_privileges - no program that this process starts gets rights that it does not have. */
struct err *confine_privileges(void);

/* confine_find_user - a user by "NAME", "UID", or either with ":GROUP" behind it by name or
 * number; a user by number alone has the group of that number.
 * errors  INVALID_ARG: there is none of that name */
struct err *confine_find_user(const char *text, uint32_t *ret_user, uint32_t *ret_group);

/* confine_user - be that user, of that group alone. The process still ends with its parent.
 * errors  UNSUPPORTED: the process may not */
struct err *confine_user(uint32_t user, uint32_t group);

struct confine_path {
    const char *path;
    bool write;
};

/* confine_files - no file is opened but those beneath these directories, or these files
 * themselves; what is not there is left out. Nor is a process outside signalled or traced.
 * errors  UNSUPPORTED: the kernel cannot do it */
struct err *confine_files(const struct confine_path *paths, unsigned count);

enum confine_calls {
    CONFINE_NETWORK = 1,  /* no socket but connected pairs */
    CONFINE_PROGRAMS = 2, /* no other program takes the place of one that runs */
};

/* confine_calls - refuse system calls (EACCES): those of `calls`, a set, and what changes the
 * machine or looks into other processes.
 * errors  UNSUPPORTED: the kernel, or this build, cannot do it */
struct err *confine_calls(unsigned calls);
