#include "server/rooms.h"

#include "batching/batching.h"
#include "cache/cache_stage.h"
#include "ensembles/ensemble_run.h"
#include "limits/limits.h"
#include "sequences/sequences.h"

/* One line a room. The first three make schedulers, the others stand around those, the cache
 * outside. */
static const struct feature *const rooms[] = {
    &sequences_feature, &ensemble_run_feature, &batching_feature,
    &limits_feature,    &cache_stage_feature,
};

const struct feature_list rooms_list = {rooms, sizeof(rooms) / sizeof(rooms[0])};
