#pragma once
/* Reads files whose names come from outside: they must stay below their directory. Absolute
 * names, names with "..", and links that lead out are refused; links that stay inside are
 * followed. Blocks; not for loop threads. */
#include "base/err.h"

#include <stddef.h>

/* beneath_read - read a regular file below a directory.
 * dir      links in it are followed
 * name     below dir, any depth
 * max      more bytes than this are an error
 * ret      followed by NUL; the caller frees it (mem_free)
 * errors   NOT_FOUND if it does not exist; INVALID_ARG if it leaves the directory, is not a
 *          regular file or is too large; else INTERNAL */
struct err *beneath_read(const char *dir, const char *name, size_t max, char **ret,
                         size_t *ret_len);

/* beneath_check - check that such a file exists; its contents are not read.
 * errors   as beneath_read */
struct err *beneath_check(const char *dir, const char *name);

/* beneath_open_by_steps - open a file on systems without the system call for it: all links are
 * refused.
 * returns  a descriptor, or -1 with errno; EXDEV for names that leave the directory */
int beneath_open_by_steps(int dir, const char *name);
