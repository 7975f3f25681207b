#pragma once
/* A number that changes when files change: of the names, kinds, sizes, inodes and times of
 * everything below a directory, or of one file. Contents are not read. Blocks; not for loop
 * threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Entries that one look takes, those of a directory once for each way that leads to it. */
#define STAMP_MAX_ENTRIES 500000u

/* stamp_directory - links are followed, but not into a directory that they lie in; names that
 * begin with a dot, and what cannot be looked at, count by their name alone.
 * errors  NOT_FOUND when it is not there; INVALID_ARG with more than STAMP_MAX_ENTRIES entries */
struct err *stamp_directory(const char *path, uint64_t *ret);

/* Which part of a directory an entry belongs to: what its stamp is added to; NULL = to none, it
 * is not looked at.
 * is_dir  links are followed */
typedef uint64_t *stamp_part_fn(void *owner, const char *name, bool is_dir);

/* stamp_parts - the same of parts of a directory that change on their own, in one go. Begin them
 * with any number.
 * errors  as stamp_directory, which may leave some of the parts added to */
struct err *stamp_parts(const char *path, stamp_part_fn *part_of, void *owner);

/* stamp_file - the same of one file; 0 when it cannot be looked at. Links are followed. */
uint64_t stamp_file(const char *path);
