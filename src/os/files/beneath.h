#pragma once
/* Reading files whose names come from outside: they stay below the directory that they belong
 * to. Names that climb, absolute ones, and links that lead out are refused; links that stay
 * inside are followed. Blocks; not for loop threads. */
#include "base/err.h"

#include <stddef.h>

/* beneath_read - the whole of a regular file below a directory.
 * dir      links in it are followed
 * name     below dir, any depth
 * max      more bytes than this are an error
 * ret      ends in NUL beyond *ret_len; the caller's (mem_free)
 * errors   NOT_FOUND when it is not there; INVALID_ARG when it leaves the directory, is no
 *          regular file or too large; else INTERNAL */
struct err *beneath_read(const char *dir, const char *name, size_t max, char **ret,
                         size_t *ret_len);

/* beneath_check - that there is such a file, whatever is in it.
 * errors   as beneath_read */
struct err *beneath_check(const char *dir, const char *name);

/* beneath_open_by_steps - how a file is opened where the system lacks the call for it: links are
 * refused altogether.
 * returns  a descriptor, or -1: errno says why, EXDEV for names that climb */
int beneath_open_by_steps(int dir, const char *name);
