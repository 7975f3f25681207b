#pragma once
/* Timeouts of queued requests. One loop watches them, because all instances of a model may be
 * busy for longer than a timeout. */
#include "os/clock.h"

struct deadline;
struct loop;
struct serve_version;

struct deadline *deadline_new(struct serve_version *v, struct loop *house);

/* deadline_watch - the queue changed: make sure that the next request to expire is answered in
 * time. Caller holds v->lock. */
void deadline_watch(struct deadline *d);

/* deadline_free - after it, no message and no timer of d is left. The loop must either run or
 * never run again. Blocks. */
void deadline_free(struct deadline *d);
