#pragma once
/* The default scheduler and the dynamic batcher in front of a version: one queue
 * (sched/batcher.h), whose batches go to any runner that is idle, or run on the loop that pushed
 * them. */
#include "serve/scheduler.h"

/* batching_make - for every version.
 * errors  as batcher_setup_new */
scheduler_make_fn batching_make;
