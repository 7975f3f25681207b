#pragma once
/* When the process's idle memory is looked at, and when it is given back to the system. To look
 * takes longer the more pieces lie in the heap, and to give back longer still: milliseconds after
 * a crowd. Requests would wait for it, so what takes long is done on a thread of its own, and there
 * is the more time between two looks, the more the last one took. First worker's thread only. */
#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct thread;

/* A look is followed by this many times as long without one, */
#define HEAP_WATCH_PART 1000

/* but by no more than this. */
#define HEAP_WATCH_REST TIME_S(3)

/* All zero at first. */
struct heap_watch {
    int64_t idle;          /* the least idle memory since the last time that some was given back */
    int64_t full;          /* the idle memory at the last look */
    time_ns since;         /* since when there is more; 0 = there is not */
    time_ns next;          /* the next look */
    time_ns took;          /* the CPU time of the last look, or of giving back */
    unsigned doubled;      /* how often the waits were doubled since something was given back */
    bool over;             /* a burst is over, and what it left was not given back yet */
    bool told;             /* the loops empty their stores; the next look gives back what is idle */
    struct thread *helper; /* looks or gives back; NULL = nothing is under way */
    atomic_bool done;      /* the helper has come to its end, and seen and took are its own */
    int64_t seen;          /* the idle memory that the last look found */
};

/* heap_watch_look - look at the heap, if it is time. Call it about once a second.
 * over     a burst is known to be over: what is idle need not be much, nor wait
 * returns  true if every loop shall call heap_empty_own before the next call. That gives back what
 *          is idle, and a later call returns true once more: what one loop emptied last, and what
 *          was given back, may have joined the end of another's arena, and heap_shorten_own takes
 *          it there. So the two take turns */
bool heap_watch_look(struct heap_watch *h, time_ns now, bool over);

/* heap_watch_end - wait for what is under way. Call it once, behind the last look. Any thread. */
void heap_watch_end(struct heap_watch *h);
