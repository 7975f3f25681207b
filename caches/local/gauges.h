#pragma once
/* The metrics of the cache: the families nv_cache_... of the server's metrics page. Every
 * function does nothing if the server has no metrics. Any thread. */
#include <stdint.h>

enum gauges_id {
    GAUGES_UTIL, /* share of the bytes that are used, 0..1 */
    GAUGES_ENTRIES,
    GAUGES_HITS,
    GAUGES_MISSES,
    GAUGES_LOOKUPS,
    GAUGES_EVICTIONS,
    GAUGES_LOOKUP_US,
    GAUGES_INSERT_US,
    GAUGES_COUNT,
};

struct gauges;

/* gauges_new - NULL if the server has no metrics. */
struct gauges *gauges_new(void);

/* gauges_free - NULL is fine. */
void gauges_free(struct gauges *g);

void gauges_set(struct gauges *g, enum gauges_id id, double value);
void gauges_add(struct gauges *g, enum gauges_id id, double value);
