#pragma once
/* Objects of one size with a small free list per thread. An object may be freed by another thread than the one that took it:
 * it joins the list of the thread that frees it. A full list gives back to the heap, and so does a thread that is not ours: nobody
 * would free its lists when it ends. */
#include <stddef.h>

#define SLAB_CLASSES 8
#define SLAB_KEEP    64 /* objects a thread keeps per class */

/* One a kind of object, static: `index` is its place among the SLAB_CLASSES lists of a thread. */
struct slab {
    unsigned index;
    size_t object_bytes;
};

/* slab_alloc - one object, not cleared, aligned to 64. Never NULL. */
__attribute__((malloc, returns_nonnull)) void *slab_alloc(const struct slab *s);
void slab_free(const struct slab *s, void *object);

/* slab_thread_begin - the calling thread keeps free objects from here on; os/thread calls it when a thread begins. */
void slab_thread_begin(void);

/* slab_thread_end - free the lists of the calling thread, which keeps nothing any more; os/thread calls it when a thread ends. */
void slab_thread_end(void);
