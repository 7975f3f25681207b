#pragma once
/* Objects of one size with a small free list per thread. An object may be freed by another
 * thread than the one that took it: it joins the list of the thread that frees it. A full list
 * is put down as a whole for a thread that takes more than it frees; where hundreds lie there
 * already, a full list gives back to the heap. So does a thread that is not ours: nobody would
 * free its lists when it ends.
 *
 * Objects of a slab with tokens have a slot in the table of base/token.h for as long as their
 * memory lives, so that handles of plug-ins cost no more than a look at the table. */
#include "base/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of objects: each has a list of its own in each thread. */
enum slab_kind {
    SLAB_REQUEST,
    SLAB_RESPONSE,
    SLAB_FACTORY,
    SLAB_HTTP_EXCHANGE,
    SLAB_HTTP_CONN,
    SLAB_GRPC_STREAM,
    SLAB_TEST_SMALL, /* of tests */
    SLAB_TEST,
    SLAB_KINDS,
};

#define SLAB_KEEP  64 /* objects a thread keeps per class */
#define SLAB_HEAD  16 /* bytes in front of an object that has a token */
#define SLAB_CLEAR 8  /* full lists that are freed at once: some 50 us */

/* One a kind of object, static. */
struct slab {
    enum slab_kind kind;
    size_t object_bytes;
    bool tokens;
};

/* slab_alloc - one object, not cleared, aligned to 64 (to 16 where it has a token). Never NULL. */
__attribute__((malloc, returns_nonnull)) void *slab_alloc(const struct slab *s);

/* slab_free - its tokens are stale from here on. */
void slab_free(const struct slab *s, void *object);

/* slab_token - the slot of an object of a slab with tokens, for token_make and token_renew. */
static inline uint32_t slab_token(const void *object)
{
    return (uint32_t)((const uint64_t *)object)[-1];
}

/* slab_trim - free what the calling thread's lists did not need since the last call, and full
 * lists that lay there for several calls of any thread: an object that stays free keeps the page
 * around it.
 * returns  objects freed */
size_t slab_trim(void);

/* slab_trim_on - go on with the full lists, SLAB_CLEAR of them a call, as slab_trim itself.
 * returns  objects freed; fewer than SLAB_CLEAR * SLAB_KEEP: no such list is left */
size_t slab_trim_on(void);

/* slab_thread_begin - the calling thread keeps free objects from here on; os/thread calls it
 * when a thread begins. */
void slab_thread_begin(void);

/* slab_thread_end - free the lists of the calling thread, which keeps nothing any more;
 * os/thread calls it when a thread ends. */
void slab_thread_end(void);
