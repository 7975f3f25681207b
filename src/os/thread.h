#pragma once
/* Threads of the server. Each has a name that tools show, blocks every signal except those of
 * crashes, and frees its slab lists at its end. */
#include "base/err.h"

#include <stdint.h>

struct thread;

/* thread_start - run fn(arg) on a new thread.
 * name    at most 15 bytes are shown by the system
 * ret     set on success; give it to thread_join or thread_leave exactly once
 * errors  UNAVAILABLE if the system has no thread; fn does not run then */
struct err *thread_start(const char *name, void (*fn)(void *arg), void *arg, struct thread **ret);

/* thread_is_of_server - true if thread_start made the calling thread. */
bool thread_is_of_server(void);

/* thread_join - wait for the end of a thread; NULL is fine. */
void thread_join(struct thread *t);

/* thread_leave - the calling thread is about to end, and nobody joins it. */
void thread_leave(struct thread *self);

/* thread_background - the calling thread runs only when other threads leave CPU time. */
void thread_background(void);

/* thread_prompt - the calling thread runs often and for short, and others wait for it: while more
 * threads than processors have work, the system lets it run soon, for shorter at a time. It gets no
 * more of the processors. From Linux 6.12 on, with SCHED_OTHER and SCHED_BATCH; else it has no
 * effect. What it starts by thread_start does not inherit it; threads that a plug-in starts there
 * do. */
void thread_prompt(void);

/* thread_slot - a small number for the calling thread, below THREAD_SLOTS. Threads share a slot
 * only when there are many. Counters of all threads are kept per slot and summed when read. */
#define THREAD_SLOTS 8
unsigned thread_slot(void);

/* Resources that the calling thread has used so far. Reading them takes two system calls: not
 * for every request. */
struct thread_usage {
    uint64_t cpu_ns;
    uint64_t blocks; /* how often it blocked: slept or waited */
};

void thread_usage(struct thread_usage *ret);
