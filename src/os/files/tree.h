#pragma once
/* Directory trees of our own: made under the temporary directory, filled without ever leaving
 * it, removed as a whole. Blocks; not for loop threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Components that a name below a tree may have. */
#define TREE_MAX_DEPTH 32u

/* tree_name_ok - whether a relative name stays below the directory it is looked up in: no empty
 * component, no "." or "..", no leading or closing '/', at most TREE_MAX_DEPTH components of at
 * most 255 bytes. Pure. */
bool tree_name_ok(const char *name);

/* tree_make - a new empty directory that only this user may enter, in $TMPDIR or /tmp.
 * prefix  the first part of its name
 * ret     its absolute path, the caller's (mem_free; tree_remove first) */
struct err *tree_make(const char *prefix, char **ret);

/* tree_write - make a file below a tree, and the directories it lies in. No link is followed.
 * name    for which tree_name_ok holds
 * errors  INVALID_ARG when the file is there, or a directory of its name was made as a file;
 *         else as the system says */
struct err *tree_write(const char *root, const char *name, const void *data, size_t len);

/* tree_share - let a group read a tree that tree_write filled, and enter its directories; others
 * may as little as before.
 * errors  UNSUPPORTED: this process may not give files to that group */
struct err *tree_share(const char *root, uint32_t group);

/* tree_remove - the directory and all that is below it; links are removed, not followed. What
 * cannot be removed stays. */
void tree_remove(const char *root);
