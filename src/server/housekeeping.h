#pragma once
/* Work that every loop does once a second: give back memory that was not used lately. The first
 * worker also deletes factories that backends forgot. */
#include "os/loop.h"
#include "server/heap_watch.h"

#include <stdbool.h>
#include <stddef.h>

struct worker;

struct housekeeping {
    struct worker *worker;
    struct loop_timer timer;
    struct loop_timer trim; /* continues to give back memory of slab lists and pools */
    size_t freed;           /* objects freed since the heap was last checked */
    bool warm;              /* the pools had warm buffers a second ago */
    struct heap_watch heap; /* of the first worker */
    unsigned told;          /* the value of `told` that this worker has seen */
};

/* housekeeping_start - call it before the worker's loop runs. */
void housekeeping_start(struct worker *w);

/* housekeeping_end - call it after the worker's loop has ended. */
void housekeeping_end(struct worker *w);
