#include "local/gauges.h"

#include "common/berr.h"

#include <stdlib.h>

struct gauges {
    TRITONSERVER_MetricFamily *families[GAUGES_COUNT];
    TRITONSERVER_Metric *metrics[GAUGES_COUNT];
};

static const char *const names[GAUGES_COUNT][2] = {
    [GAUGES_UTIL] = {"nv_cache_util",
                     "Share of the response cache's bytes that are used [0.0 - 1.0]"},
    [GAUGES_ENTRIES] = {"nv_cache_num_entries", "Answers in the response cache"},
    [GAUGES_HITS] = {"nv_cache_num_hits", "Look-ups that the response cache had an answer to"},
    [GAUGES_MISSES] = {"nv_cache_num_misses", "Look-ups that the response cache had no answer to"},
    [GAUGES_LOOKUPS] = {"nv_cache_num_lookups", "Look-ups in the response cache"},
    [GAUGES_EVICTIONS] = {"nv_cache_num_evictions",
                          "Answers that left the response cache for others"},
    [GAUGES_LOOKUP_US] = {"nv_cache_lookup_duration",
                          "Microseconds spent looking up in the response cache"},
    [GAUGES_INSERT_US] = {"nv_cache_insertion_duration",
                          "Microseconds spent putting into the response cache"},
};

static TRITONSERVER_Error *local_gauges_make(struct gauges *g, enum gauges_id id)
{
    TRITONSERVER_Error *err = TRITONSERVER_MetricFamilyNew(
        &g->families[id], TRITONSERVER_METRIC_KIND_GAUGE, names[id][0], names[id][1]);
    return err ? err : TRITONSERVER_MetricNew(&g->metrics[id], g->families[id], NULL, 0);
}

struct gauges *gauges_new(void)
{
    struct gauges *g = calloc(1, sizeof(*g));
    for (int id = 0; g && id < GAUGES_COUNT; id++) {
        TRITONSERVER_Error *err = local_gauges_make(g, (enum gauges_id)id);
        if (!err)
            continue;
        berr_drop(err);
        gauges_free(g);
        g = NULL;
    }
    return g;
}

void gauges_free(struct gauges *g)
{
    for (int id = 0; g && id < GAUGES_COUNT; id++) {
        if (g->metrics[id])
            berr_drop(TRITONSERVER_MetricDelete(g->metrics[id]));
        if (g->families[id])
            berr_drop(TRITONSERVER_MetricFamilyDelete(g->families[id]));
    }
    free(g);
}

void gauges_set(struct gauges *g, enum gauges_id id, double value)
{
    if (g)
        berr_drop(TRITONSERVER_MetricSet(g->metrics[id], value));
}

void gauges_add(struct gauges *g, enum gauges_id id, double value)
{
    if (g)
        berr_drop(TRITONSERVER_MetricIncrement(g->metrics[id], value));
}
