#pragma once
/* A cache on disk of what was read from stores. Content lies once, under its SHA-256; a
 * reference leads from an object of a store (id: where it lies and which state of it) to its
 * content. Models are directories of links to it. Servers may share one.
 *
 *   ROOT/objects/<2>/<62> content, read-only; the last use in its access time ROOT/refs/<id>
 *   "<sha256> <bytes>\n" ROOT/parts/<id> on its way; ROOT/parts/<id>.map has a byte for each
 *   piece that arrived ROOT/run/<process>/ model directories, gone with the process; its lock
 *   file says whether it lives
 *
 * Blocks; any thread. docs/internals/stores.md */
#include "base/err.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STASH_HASH_BYTES 32u
#define STASH_ID_CHARS   64u

/* How SHA-256 is computed: by whoever has it. */
struct stash_hash {
    void *(*begin)(void);
    void (*add)(void *hash, const void *data, size_t len);
    void (*end)(void *hash, unsigned char out[STASH_HASH_BYTES]);
};

/* Content is dropped, least recently used first, past this many bytes, unless the environment
 * says otherwise. */
#define STASH_DEFAULT_MAX_BYTES ((uint64_t)100 << 30)

struct stash;

/* stash_open - root is made when it is not there; directories of processes that ended are removed.
 * max_bytes  what content may take; what a loaded model uses counts, and stays all the same */
struct err *stash_open(const char *root, uint64_t max_bytes, const struct stash_hash *hash,
                       struct stash **ret);
void stash_close(struct stash *s);

/* stash_max_bytes - what content may take. */
uint64_t stash_max_bytes(const struct stash *s);

/* stash_id - the id of an object: of the text that names it and its state.
 * ret  STASH_ID_CHARS and NUL */
void stash_id(const struct stash *s, const char *text, char ret[STASH_ID_CHARS + 1]);

/* stash_model_dir - a new empty directory whose last component is `model`.
 * ret  the caller's: stash_drop_model_dir, then mem_free */
struct err *stash_model_dir(struct stash *s, const char *model, char **ret);
void stash_drop_model_dir(const char *dir);

/* stash_link - make the file `to` out of content that is there. Content that is not what it was
 * is dropped, and counts as absent.
 * ret  whether it was there */
struct err *stash_link(struct stash *s, const char *id, uint64_t bytes, const char *to, bool *ret);

/* An object on its way into the stash. */
struct stash_part {
    char id[STASH_ID_CHARS + 1];
    char *path;
    char *map_path;
    int fd; /* -1 = none */
    int map_fd;
    uint64_t bytes;
};

/* stash_begin - open the part of an object, with what arrived of it before. *ret is NULL when
 * another process is at it.
 * pieces  how many it is fetched in */
struct err *stash_begin(struct stash *s, const char *id, uint64_t bytes, size_t pieces,
                        struct stash_part **ret);

/* stash_has_piece, stash_piece_done - which pieces have arrived; only for parts of several. */
bool stash_has_piece(const struct stash_part *p, size_t piece);
struct err *stash_piece_done(struct stash_part *p, size_t piece);

/* stash_restart - everything arrives anew. */
struct err *stash_restart(struct stash_part *p);

/* stash_read - give the part's content to each of the hashes that is not NULL: begin was called,
 * end was not.
 * add  called with (hashes[i], data, len) */
struct err *stash_read(const struct stash_part *p,
                       void (*add)(void *owner, const void *data, size_t len), void *owner);

/* stash_commit - the part is content, and its id leads there. The part is freed either way. */
struct err *stash_commit(struct stash *s, struct stash_part *p,
                         const unsigned char sha[STASH_HASH_BYTES]);

/* stash_drop - a part that is not needed after all. */
void stash_drop(struct stash_part *p);

/* stash_leave - close a part; what arrived stays for the next time. */
void stash_leave(struct stash_part *p);

/* stash_evict - drop what no model uses until at most max_bytes are left, 0 = all of it. */
void stash_evict(struct stash *s, uint64_t max_bytes);
