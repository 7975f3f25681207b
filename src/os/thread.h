#pragma once
/* Threads of the server. Each gets a name that tools show, blocks every signal but those of
 * crashes, and frees its slab lists at its end. */
#include "base/err.h"

#include <stdint.h>

struct thread;

/* thread_start - run fn(arg) on a new thread.
 * name    at most 15 bytes are shown by the system
 * ret     set on success; give it to thread_join exactly once
 * errors  UNAVAILABLE when the system has no thread to give; then fn does not run */
struct err *thread_start(const char *name, void (*fn)(void *arg), void *arg, struct thread **ret);

/* thread_is_of_server - whether the calling thread was made by thread_start. */
bool thread_is_of_server(void);

/* thread_join - wait for the end of a thread; NULL is fine. */
void thread_join(struct thread *t);

/* thread_background - the calling thread works only where the others leave time. */
void thread_background(void);

/* thread_slot - a small number of the calling thread, below THREAD_SLOTS: threads share slots
 * only when there are many. Counters that every thread adds to are kept per slot and summed when
 * read. */
#define THREAD_SLOTS 8
unsigned thread_slot(void);

/* What the calling thread has used so far. Two system calls: not for every request. */
struct thread_usage {
    uint64_t cpu_ns;
    uint64_t blocks; /* how often it gave up its core by itself: slept, waited */
};

void thread_usage(struct thread_usage *ret);
