#pragma once
/* A cache on disk for objects of stores. Each content is stored once, named by its SHA-256. A
 * reference leads from an object of a store (its id: place and state) to its content. A model's
 * directory contains links to contents. Several servers may share a cache.
 *
 *   ROOT/objects/<2>/<62>  content, read-only; its access time is its last use
 *   ROOT/refs/<id>         "<sha256> <bytes>" and a line break
 *   ROOT/parts/<id>        content that is being downloaded; <id>.map has a byte for each piece
 *                          that arrived
 *   ROOT/run/<process>/    model directories, removed with the process; its lock file shows
 *                          whether the process lives
 *
 * Blocks; any thread. docs/internals/stores.md */
#include "base/err.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STASH_HASH_BYTES 32u
#define STASH_ID_CHARS   64u

/* The functions that compute SHA-256. */
struct stash_hash {
    void *(*begin)(void);
    void (*add)(void *hash, const void *data, size_t len);
    void (*end)(void *hash, unsigned char out[STASH_HASH_BYTES]);
};

/* The default limit of the cache. Above it, the least recently used content is evicted. */
#define STASH_DEFAULT_MAX_BYTES ((uint64_t)100 << 30)

struct stash;

/* stash_open - open the cache; root is made if needed. Directories of processes that have ended
 * are removed.
 * max_bytes  the most bytes of content. Content that a loaded model uses counts, but is never
 *            evicted */
struct err *stash_open(const char *root, uint64_t max_bytes, const struct stash_hash *hash,
                       struct stash **ret);
void stash_close(struct stash *s);

/* stash_max_bytes - the most bytes of content. */
uint64_t stash_max_bytes(const struct stash *s);

/* stash_id - the id of an object: the hash of a text with its name and state.
 * ret  STASH_ID_CHARS and a NUL */
void stash_id(const struct stash *s, const char *text, char ret[STASH_ID_CHARS + 1]);

/* stash_model_dir - make an empty directory whose last component is `model`.
 * ret  owned by the caller: stash_drop_model_dir, then mem_free */
struct err *stash_model_dir(struct stash *s, const char *model, char **ret);
void stash_drop_model_dir(const char *dir);

/* stash_link - make the file `to` from cached content. Damaged content is removed and counts as
 * missing.
 * ret  true if the content was in the cache */
struct err *stash_link(struct stash *s, const char *id, uint64_t bytes, const char *to, bool *ret);

/* An object that is being downloaded into the cache. */
struct stash_part {
    char id[STASH_ID_CHARS + 1];
    char *path;
    char *map_path;
    int fd; /* -1 = none */
    int map_fd;
    uint64_t bytes;
};

/* stash_begin - open the download of an object, with the pieces that arrived earlier. *ret is
 * NULL if another process is downloading it.
 * pieces  the number of pieces */
struct err *stash_begin(struct stash *s, const char *id, uint64_t bytes, size_t pieces,
                        struct stash_part **ret);

/* stash_has_piece, stash_piece_done - whether a piece has arrived, and marking it; only for
 * downloads in several pieces. */
bool stash_has_piece(const struct stash_part *p, size_t piece);
struct err *stash_piece_done(struct stash_part *p, size_t piece);

/* stash_restart - download every piece again. */
struct err *stash_restart(struct stash_part *p);

/* stash_read - read the whole downloaded content.
 * add  called with (owner, data, len) for each run of bytes */
struct err *stash_read(const struct stash_part *p,
                       void (*add)(void *owner, const void *data, size_t len), void *owner);

/* stash_commit - turn the download into content with a reference from its id. The part is freed
 * in any case. */
struct err *stash_commit(struct stash *s, struct stash_part *p,
                         const unsigned char sha[STASH_HASH_BYTES]);

/* stash_drop - give up a download that is not needed, and remove it. */
void stash_drop(struct stash_part *p);

/* stash_leave - close a download; what arrived is kept for the next time. */
void stash_leave(struct stash_part *p);

/* stash_evict - evict content that no model uses until at most max_bytes are left; 0 = all of
 * it. */
void stash_evict(struct stash *s, uint64_t max_bytes);
