#pragma once
/* Objects of one size, with a small free list per thread. Any thread may free an object; the
 * object joins that thread's list. A full list is put on a shared shelf as a whole, for threads
 * that take more objects than they free. If the shelf is full, the list's objects are freed to
 * the heap. A thread that the server did not start frees to the heap at once, because nobody
 * would free its lists at its end.
 *
 * Each object of a slab with tokens has a slot in the table of base/token.h as long as its
 * memory exists, so that a handle for a plug-in costs only one access to the table. */
#include "base/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of objects. Each thread has a list per kind. */
enum slab_kind {
    SLAB_REQUEST,
    SLAB_RESPONSE,
    SLAB_FACTORY,
    SLAB_HTTP_EXCHANGE,
    SLAB_HTTP_CONN,
    SLAB_GRPC_STREAM,
    SLAB_HTTP2_STREAM,
    SLAB_TEST_SMALL, /* used in tests */
    SLAB_TEST,
    SLAB_KINDS,
};

#define SLAB_KEEP  64 /* free objects that a thread keeps per kind */
#define SLAB_HEAD  16 /* bytes in front of an object with a token */
#define SLAB_CLEAR 8  /* full lists that are freed at once; takes about 50 us */

/* The description of a kind of object; static. */
struct slab {
    enum slab_kind kind;
    size_t object_bytes;
    bool tokens;
};

/* slab_alloc - one object, not cleared, aligned to 64 (16 if it has a token). Never NULL. */
__attribute__((malloc, returns_nonnull)) void *slab_alloc(const struct slab *s);

/* slab_free - free an object; its tokens are stale from here on. */
void slab_free(const struct slab *s, void *object);

/* slab_token - the slot of an object with a token, for token_make and token_renew. */
static inline uint32_t slab_token(const void *object)
{
    return (uint32_t)((const uint64_t *)object)[-1];
}

/* slab_trim - free objects of the calling thread's lists that were not needed since the last
 * call, and lists that were on a shelf during several calls of any thread. An object that stays
 * free keeps its page in memory. A thread that never calls it does the same with a list when it
 * uses the list after another thread's call.
 * returns  number of objects freed */
size_t slab_trim(void);

/* slab_trim_on - continue slab_trim with the lists on the shelves, SLAB_CLEAR of them per call.
 * returns  number of objects freed; fewer than SLAB_CLEAR * SLAB_KEEP: no such list is left */
size_t slab_trim_on(void);

/* slab_thread_begin - the calling thread keeps free objects from here on; os/thread calls it
 * when a thread begins. */
void slab_thread_begin(void);

/* slab_thread_end - free the lists of the calling thread, which then keeps no objects; os/thread
 * calls it when a thread ends. */
void slab_thread_end(void);
