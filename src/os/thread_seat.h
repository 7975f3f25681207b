#pragma once
/* Places for threads that end by themselves while whoever started them goes on: a thread that
 * ended is joined when its place is needed, or at the end. What is said of a lock is the lock of
 * whoever owns the places. */
#include "os/thread.h"

#include <stdbool.h>

struct thread_seat {
    struct thread *thread; /* NULL = free */
    void *owner;           /* for the thread, which gets the seat as its argument */
    bool ended;            /* it takes no lock any more: joining it does not wait for others */
};

/* thread_seat_free - a place that can be given to a thread, or NULL. Lock held. */
struct thread_seat *thread_seat_free(struct thread_seat *seats, unsigned count);

/* thread_seat_start - thread_start of fn(seat), in a free place. Lock held. */
struct err *thread_seat_start(struct thread_seat *seat, void *owner, const char *name,
                              void (*fn)(void *seat));

/* thread_seat_join - wait for the ends of all. No new one may start. Lock not held. */
void thread_seat_join(struct thread_seat *seats, unsigned count);
