#pragma once
/* Seats for threads that end by themselves while their starter goes on. A thread that has ended
 * is joined when its seat is needed, or at the end. "Lock" means the lock of the owner of the
 * seats. */
#include "os/thread.h"

#include <stdbool.h>

struct thread_seat {
    struct thread *thread; /* NULL = free */
    void *owner;           /* passed to the thread, whose argument is the seat */
    bool ended;            /* the thread takes no lock any more, so joining it is quick */
};

/* thread_seat_free - a seat that can be given to a thread; NULL if there is none. Lock held. */
struct thread_seat *thread_seat_free(struct thread_seat *seats, unsigned count);

/* thread_seat_start - start fn(seat) in a free seat, as thread_start. Lock held. */
struct err *thread_seat_start(struct thread_seat *seat, void *owner, const char *name,
                              void (*fn)(void *seat));

/* thread_seat_join - wait until all threads have ended. No new one may start. Lock not held. */
void thread_seat_join(struct thread_seat *seats, unsigned count);
