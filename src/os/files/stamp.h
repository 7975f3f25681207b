#pragma once
/* A number that changes when files change: of the names, kinds, sizes, inodes and times of
 * everything below a directory, or of one file. Contents are not read. Blocks; not for loop
 * threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The most entries of one look. A directory that is reached through several links counts each
 * time. */
#define STAMP_MAX_ENTRIES 500000u

/* stamp_directory - the stamp of a directory. Links are followed, except into a directory that
 * contains them. Names that begin with a dot, and entries that cannot be read, count only with
 * their name.
 * errors  NOT_FOUND if it does not exist; INVALID_ARG with more than STAMP_MAX_ENTRIES entries */
struct err *stamp_directory(const char *path, uint64_t *ret);

/* stamp_part_fn - the part of a directory that an entry belongs to: a pointer to the number to
 * which its stamp is added; NULL = skip the entry.
 * is_dir  links are followed */
typedef uint64_t *stamp_part_fn(void *owner, const char *name, bool is_dir);

/* stamp_parts - the stamps of parts of a directory that change independently, in one pass. The
 * numbers may begin with any value.
 * errors  as stamp_directory; some parts may have been changed then */
struct err *stamp_parts(const char *path, stamp_part_fn *part_of, void *owner);

/* stamp_file - the stamp of one file, of its owner and mode too; 0 if it cannot be read. Follows
 * symbolic links. */
uint64_t stamp_file(const char *path);

/* Files that are read again after they have changed. Begins with zeros. */
struct stamp_watch {
    uint64_t used; /* when they were last read, even if they could not be used */
    uint64_t seen; /* at the last look */
    uint64_t told; /* which error the last reading ended with; 0 = none */
};

/* stamp_watch_due - note the stamp of a look.
 * now      they are read even if they are the same, or are being written
 * returns  true if they must be read: they have changed, or the last reading failed, which need
 *          not lie in the files; and they have not changed since the look before */
bool stamp_watch_due(struct stamp_watch *w, uint64_t stamp, bool now);

/* stamp_watch_read - note how the reading ended. Returns true if it failed and not with the same
 * words as the last time: then it must be told.
 * e  borrowed; NULL = well */
bool stamp_watch_read(struct stamp_watch *w, const struct err *e);
