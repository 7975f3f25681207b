#include "os/heap.h"

#include "os/thread.h"

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#define HEAPS      2
#define KEPT_BYTES (1 << 20) /* free at the end of a heap */

/* Of the 64 MiB that a heap but the first can have. */
#define GROWN_BYTES ((size_t)32 << 20)

/* Less than what the C library maps on its own instead of taking it from a heap. */
#define PIECE_BYTES ((size_t)120 << 10)

/* Takes pieces of the calling thread's heap and gives them back, the last one first. */
static void grow(void *unused)
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
    while (last) {
        void **piece = last;
        last = *piece;
        free(piece);
    }
}

/* The C library lets the heap of other threads than the first grow a page at a time, by a call for each that also holds up whoever
 * touches a new page meanwhile: a third of the time in which ONNX Runtime makes itself ready. Up to where such a heap was once it
 * grows without. The first thread gets that heap, and leaves it to those that follow. */
static void grow_second_heap(void)
{
    struct thread *t;
    struct err *e = thread_start("heap", grow, NULL, &t);
    if (!e)
        thread_join(t);
    err_free(e);
}

void heap_begin(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    if (mallopt(M_ARENA_MAX, HEAPS))
        grow_second_heap();
}
