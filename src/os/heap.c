#include "os/heap.h"

#include "os/thread.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

#define HEAPS      2
#define KEPT_BYTES (1 << 20)   /* free at the end of a heap */
#define PAD_BYTES  (128 << 10) /* as the C library has it */

/* Of the 64 MiB that a heap but the first can have. */
#define GROWN_BYTES ((size_t)32 << 20)

/* Less than what the C library maps on its own instead of taking it from a heap. */
#define PIECE_BYTES ((size_t)120 << 10)

/* Pieces that name the next. */
static void heap_free_all(void *first)
{
    while (first) {
        void **piece = first;
        first = *piece;
        free(piece);
    }
}

/* Takes pieces of the calling thread's heap and gives them back, the last one first. */
static void heap_grow(void *unused)
{
    (void)unused;
    void **last = NULL;
    for (size_t taken = 0; taken < GROWN_BYTES; taken += PIECE_BYTES) {
        void **piece = malloc(PIECE_BYTES);
        if (!piece)
            break;
        *piece = last;
        last = piece;
    }
    heap_free_all(last);
}

/* The C library lets the heap of other threads than the first grow a page at a time, by a call
 * for each that also holds up whoever touches a new page meanwhile: a third of the time in which
 * ONNX Runtime makes itself ready. Up to where such a heap was once it grows without. The first
 * thread gets that heap, and leaves it to those that follow. */
static void grow_second_heap(void)
{
    struct thread *t;
    struct err *e = thread_start("heap", heap_grow, NULL, &t);
    if (!e)
        thread_join(t);
    err_free(e);
}

static bool ours; /* the settings are; written before there is another thread */

void heap_begin(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    ours = mallopt(M_ARENA_MAX, HEAPS);
    if (ours)
        grow_second_heap();
}

#if defined(__SANITIZE_ADDRESS__)

/* The sanitizer's public interface; gcc does not bring its header. */
size_t __sanitizer_get_heap_size(void);
size_t __sanitizer_get_current_allocated_bytes(void);
void __sanitizer_purge_allocator(void);

size_t heap_free_bytes(void)
{
    size_t held = __sanitizer_get_heap_size();
    size_t used = __sanitizer_get_current_allocated_bytes();
    return held > used ? held - used : 0;
}

void heap_trim(void)
{
    __sanitizer_purge_allocator();
}

#else

/* Of each of its small sizes a thread keeps some pieces that nobody else sees, and that hold the
 * pages where they lie. */
#define CACHED_SIZES 64u
#define CACHED_FIRST 24u
#define CACHED_STEP  16u
#define CACHED_EACH  7u

size_t heap_free_bytes(void)
{
    return mallinfo2().fordblks;
}

/* The pieces leave the thread's own store when they are asked for, and do not come back to it
 * when another thread frees them: that one's store goes when it ends. */
static void empty_own_store(void)
{
    void **last = NULL;
    for (unsigned i = 0; i < CACHED_SIZES * CACHED_EACH; i++) {
        void **piece = malloc(CACHED_FIRST + i / CACHED_EACH * CACHED_STEP);
        if (!piece)
            break;
        *piece = last;
        last = piece;
    }
    struct thread *t;
    struct err *e = thread_start("heap", heap_free_all, last, &t);
    if (e)
        heap_free_all(last);
    else
        thread_join(t);
    err_free(e);
}

/* malloc_trim leaves the ends of all heaps but the first. The C library looks at the end when a
 * large piece is freed. */
static void shorten_own_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, 0);
    mallopt(M_TOP_PAD, 0);
    void **piece = malloc(PIECE_BYTES);
    if (piece)
        *piece = NULL;
    heap_free_all(piece);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_TOP_PAD, PAD_BYTES);
}

void heap_trim(void)
{
    empty_own_store();
    if (ours)
        shorten_own_heap();
    malloc_trim(0);
}

#endif
