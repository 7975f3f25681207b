#pragma once
/* Batches that a loop begins and that are carried on elsewhere, by another process for example
 * (nereid_instance_begin_v1). The loop serves its connections meanwhile and ends the batch when
 * the instance's bell rings, so that a small request needs no instance thread. What may block, or
 * takes longer than the loop wants to wait, goes to the thread of the instance. */
#include "os/clock.h"

#include <stdbool.h>

struct begun;
struct runner;

/* begun_new - NULL: the runner's instance executes in one piece. */
struct begun *begun_new(struct runner *r);

/* begun_free - nothing is begun. NULL is fine. */
void begun_free(struct begun *b);

/* begun_run - begin a queued batch on a claimed runner, and more on other idle runners while there
 * are both. When its batch has ended, a runner is given back; its thread goes on with what is
 * queued.
 * now  when the caller looked at the clock
 * Thread: a loop. Caller holds v->lock; it is released on return. */
void begun_run(struct runner *r, time_ns now);

/* begun_take_over - end what a loop left to r's thread; false: nothing. Blocks. Caller holds
 * v->lock, which is released meanwhile. */
bool begun_take_over(struct runner *r);
