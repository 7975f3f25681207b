/* The executable: everything is in the library. What belongs to the process and not to a library is done here. */
#include "nereid_private.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

#define HEAP_GROWN ((size_t)32 << 20)  /* of the 64 MiB that such a heap can have */
#define HEAP_PIECE ((size_t)120 << 10) /* less than what is mapped on its own */

/* Says what crashed, then lets the signal do what it does without a handler. */
static void on_crash(int number)
{
    nereid_private_v1.crash_line(number);
    raise(number); /* waits until this returns; the handler is gone by then */
}

static void watch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction act = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        struct sigaction there;
        if (sigaction(numbers[i], NULL, &there) == 0 && there.sa_handler == SIG_DFL)
            sigaction(numbers[i], &act, NULL);
    }
}

/* Takes pieces of the calling thread's heap and gives them back, the last one first. */
static void *grow(void *unused)
{
    void **last = NULL;
    for (size_t taken = 0; taken < HEAP_GROWN; taken += HEAP_PIECE) {
        void **piece = malloc(HEAP_PIECE);
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
    return unused;
}

/* The C library lets the heap of other threads than the first grow a page at a time, by a call for each that also holds up whoever
 * touches a new page meanwhile: half of the time in which a runtime like ONNX Runtime makes itself ready. Up to where such a heap
 * was once it grows without. The first thread gets that heap, and leaves it to those that follow. */
static void grow_second_heap(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, grow, NULL) == 0)
        pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    /* Few heaps and prompt trimming: the memory of a burst goes back instead of staying in a heap per thread. */
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
    if (mallopt(M_ARENA_MAX, 2)) /* not a sanitizer's heap */
        grow_second_heap();
    watch_crashes();
    return nereid_private_v1.run(argc, argv);
}
