#pragma once
/* The default scheduler and the dynamic batcher in front of a version: one queue
 * (batching/batcher.h), whose batches go to any runner that is idle, or run on the loop that pushed
 * them. */
#include "serve/features.h"

/* Schedules versions without sequences and ensembles.
 * errors of make  as batcher_setup_new */
extern const struct feature batching_feature;
