#pragma once
/* Directory trees that the server makes below the temporary directory; they are filled without
 * leaving the tree, and removed as a whole. Blocks; not for loop threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most components of a name below a tree, and the most bytes of each. */
#define TREE_MAX_DEPTH 32u
#define TREE_MAX_PART  255u

/* tree_name_ok - true if a relative name stays below its directory: no empty component, no "."
 * or "..", no leading or trailing '/', at most TREE_MAX_DEPTH components of at most
 * TREE_MAX_PART bytes. Pure. */
bool tree_name_ok(const char *name);

/* The prefixes of the trees that a server makes. */
#define TREE_UPLOAD "nereid-upload"
#define TREE_AGENT  "nereid-agent"

/* tree_make - make an empty directory that only this user may enter, in $TMPDIR or /tmp. It is
 * locked until tree_remove, or until the process ends.
 * prefix  the first part of its name
 * ret     its absolute path; the caller frees it (mem_free) after tree_remove */
struct err *tree_make(const char *prefix, char **ret);

/* tree_write - make a file below a tree, and its parent directories. Links are not followed.
 * name    a name for which tree_name_ok is true
 * errors  INVALID_ARG if the file exists, or a parent directory exists as a file; else the
 *         system's error */
struct err *tree_write(const char *root, const char *name, const void *data, size_t len);

/* tree_share - let a group read the files of a tree and enter its directories. Access of others
 * does not change.
 * errors  UNSUPPORTED: this process may not give files to that group */
struct err *tree_share(const char *root, uint32_t group);

/* tree_remove - remove the directory and everything below it; links are removed, not followed.
 * What cannot be removed stays. */
void tree_remove(const char *root);

/* tree_remove_all - remove every tree of this process, which ends. */
void tree_remove_all(void);

/* tree_sweep - remove the trees with these prefixes of processes that ended without removing them:
 * nobody holds their lock.
 * prefixes  ended by NULL */
void tree_sweep(const char *const *prefixes);
