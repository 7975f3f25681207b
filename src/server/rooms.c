#include "server/rooms.h"

#include "batching/batching.h"
#include "cache/cache_stage.h"
#include "ensembles/ensemble_run.h"
#include "limits/limits.h"
#include "sequences/sequences.h"

/* One line per feature: first those that make schedulers, then the wrappers, from the inside to
 * the outside. */
static const struct feature *const rooms[] = {
    &sequences_feature,    /* versions with sequence_batching */
    &ensemble_run_feature, /* versions with ensemble_scheduling */
    &batching_feature,     /* all others */
    &limits_feature,       /* --rate-limit */
    &cache_stage_feature,  /* --cache-config */
};

const struct feature_list rooms_list = {rooms, sizeof(rooms) / sizeof(rooms[0])};
