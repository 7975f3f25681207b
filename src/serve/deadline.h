#pragma once
/* Time-outs of queued requests, watched on one loop, since all instances of a model may be busy. */
#include "os/clock.h"

struct deadline;
struct loop;
struct serve_version;

struct deadline *deadline_new(struct serve_version *v, struct loop *house);

/* deadline_watch - the queue changed: see to it that what expires first is answered in time.
 * Caller holds v->lock. */
void deadline_watch(struct deadline *d);

/* deadline_free - no message or timer of it is left afterwards; the loop runs, or will not run
 * any more. Blocks. */
void deadline_free(struct deadline *d);
