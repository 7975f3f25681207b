#pragma once
/* Threads, locks and the clock of a simulation, in place of those of os/: a program that is
 * linked with steps.c uses these. One thread runs at a time. Which one goes on is drawn from a
 * seed wherever a thread takes or releases a lock, waits or begins; time is virtual and moves on
 * when no thread can. So a seed decides everything that happens, and shows it again.
 *
 * What stays real: os/loop.c (its epoll_wait waits in virtual time), everything above os/. */
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;

/* How a run behaves; drawn from its seed. */
struct steps_mood {
    unsigned calm;      /* one in so many steps may go to another thread */
    unsigned jitter_ns; /* the clock moves on by less than this when it is read; 0 = it stands */
    unsigned spurious;  /* one wait in so many returns without reason; 0 = none */
    unsigned thread_failures; /* one thread in so many cannot be started; 0 = all can */
};

/* steps_begin - the calling thread is the first of the run.
 * at_rest  called whenever nobody can go on at this time; takes no lock */
void steps_begin(uint64_t seed, void (*at_rest)(void));

/* steps_end - all other threads were joined. */
void steps_end(void);

/* steps_mood - of this run. */
const struct steps_mood *steps_mood(void);

/* steps_pick - a number below this one. steps_one_in - true once in so many times. */
unsigned steps_pick(unsigned below);
bool steps_one_in(unsigned n);

/* steps_now - the time; reading it here does not move it. */
time_ns steps_now(void);

/* steps_sleep - the calling thread waits for so long. steps_busy - and uses its core meanwhile. */
void steps_sleep(time_ns span);
void steps_busy(time_ns span);

/* steps_note - one line of what happened, kept for a failure. `what` lives as long as the
 * program. */
void steps_note(const char *what, long a, long b);

/* steps_progress - something was achieved: whoever counts steps without any begins anew. */
void steps_progress(void);

/* steps_last_progress - when that was. Of all runs so far: steps_longest - the most steps
 * without any; steps_depth - the deepest stack of a thread, in bytes. */
time_ns steps_last_progress(void);
unsigned steps_longest(void);
unsigned long steps_depth(void);

/* steps_starts_failed - how many threads could not be started in this run. */
unsigned steps_starts_failed(void);

/* steps_self - a number of the calling thread. */
unsigned steps_self(void);

/* steps_fail - say what is wrong, the seed, what every thread does and what happened last, and
 * end the process. */
_Noreturn void steps_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
