#pragma once
/* What every loop does once a second: give memory back that was not used lately. The first one
 * ends what backends forgot. */
#include "os/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct worker;

struct housekeeping {
    struct worker *worker;
    struct loop_timer timer;
    struct loop_timer trim; /* goes on with what lists and pools give back */
    size_t freed;           /* objects that were, since the heap was looked at */
    bool warm;              /* buffers were kept warm a second ago */
    unsigned heap_full;     /* for so many seconds the heap has held more than it should keep */
    unsigned trims;         /* of the heap that the worker has seen */
    size_t heap_idle;       /* the least that was free in the heap since it gave back last */
};

/* housekeeping_start - before the worker's loop runs. */
void housekeeping_start(struct worker *w);
