#pragma once
/* The steps of a runner's turn, for the turns that are not the ordinary one (serve/limits.c). */
#include "serve/runner.h"

/* runner_take - the next batch, into r->batch; what the queue gave up is answered. Caller holds v->lock, which may be released
 * meanwhile, though not after the queue was asked for the last time.
 * returns  requests taken; 0: nothing to run now, *ret_wake as batcher_take */
size_t runner_take(struct runner *r, time_ns now, time_ns *ret_wake);

/* runner_execute - one Execute with what was taken. Lock not held. */
void runner_execute(struct runner *r, size_t count, time_ns now);

/* runner_answer_dropped - answer what the queue gave up. Caller holds v->lock; it is released meanwhile. */
void runner_answer_dropped(struct serve_version *v, time_ns now);
