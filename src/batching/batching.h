#pragma once
/* The default scheduler and the dynamic batcher of a version: one queue (batching/batcher.h).
 * Any idle runner, or the loop that pushed the requests, runs its batches. */
#include "serve/features.h"

/* The scheduler of versions that are neither sequence models nor ensembles. Errors of make: as
 * batcher_setup_new. */
extern const struct feature batching_feature;
