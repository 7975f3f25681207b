#pragma once
/* Counters of the front ends: requests by route, model and code, requests in flight, bytes,
 * connections. Each worker of each front end has its own counters. Only the worker's thread adds
 * to them; a reader sums them.
 *
 * The values of labels are limited: routes and codes by tables, models by what was loaded. */
#include "metrics/metrics_page.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define FRONT_METRICS_ROUTES      32u
#define FRONT_METRICS_CODES       24u
#define FRONT_METRICS_MODEL_SLOTS 3u
#define FRONT_METRICS_PAGES       64u
#define FRONT_METRICS_PAGE_MODELS 256u

/* How many names of models that are not served keep their counters: a model that comes back
 * continues them. */
#define FRONT_METRICS_GONE 256u

/* Relaxed, with one writer: only the numbers matter. */
typedef _Atomic(uint64_t) front_metrics_count_t;

struct front_metrics_route {
    const char *name;
    int model_slot; /* requests of this route are counted by model too; -1 = they are not */
};

/* What the workers of a front end share; static. */
struct front_metrics_kind {
    const char *protocol;
    bool grpc; /* codes are those of gRPC, else of HTTP */
    const struct front_metrics_route *routes;
    unsigned route_count;
};

struct front_metrics_model {
    front_metrics_count_t counts[FRONT_METRICS_MODEL_SLOTS][FRONT_METRICS_CODES];
};

struct front_metrics_page {
    /* Published with release, so that readers see zeroed counters. */
    _Atomic(struct front_metrics_model *) models[FRONT_METRICS_PAGE_MODELS];
};

struct front_metrics {
    const struct front_metrics_kind *kind;
    struct front_metrics *next; /* in the list of all workers' counters */
    front_metrics_count_t begun;
    front_metrics_count_t ended;
    front_metrics_count_t received_bytes;
    front_metrics_count_t sent_bytes;
    front_metrics_count_t opened;
    front_metrics_count_t closed;
    front_metrics_count_t routes[FRONT_METRICS_ROUTES][FRONT_METRICS_CODES];
    _Atomic(struct front_metrics_page *) pages[FRONT_METRICS_PAGES]; /* published with release */
};

/* front_metrics_new, front_metrics_free - the counters of one worker of a front end. When they
 * are freed, the worker must not count any more. Any thread. */
struct front_metrics *front_metrics_new(const struct front_metrics_kind *kind);
void front_metrics_free(struct front_metrics *f);

/* front_metrics_add - called by the thread that owns the counter. */
static inline void front_metrics_add(front_metrics_count_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* front_metrics_end - a request that was counted as begun was answered.
 * route  index into the kind's routes
 * model  from front_metrics_model_id; 0 = not known
 * code   of HTTP or gRPC */
void front_metrics_end(struct front_metrics *f, unsigned route, uint32_t model, int code);

/* front_metrics_failed - a part of a request failed: a message of a stream, which goes on and
 * ends separately. Parameters as for front_metrics_end. */
void front_metrics_failed(struct front_metrics *f, unsigned route, uint32_t model, int code);

/* front_metrics_model_id - the number of a model's name, the same for every version and after a
 * reload; 0 if there are too many names. Counts a user of the name, until
 * front_metrics_model_left. Any thread; takes a lock. */
uint32_t front_metrics_model_id(const char *name);

/* front_metrics_model_left - a user of the name less. The number of an unused name is given to
 * another name after FRONT_METRICS_GONE more names became unused; a request that is still
 * counted later counts for the other name. id 0 is fine. Any thread; takes a lock. */
void front_metrics_model_left(uint32_t id);

/* front_metrics_model_name - the name of a number, cut to size - 1 bytes; "" for 0. Any thread;
 * takes a lock. */
void front_metrics_model_name(uint32_t id, char *to, size_t size);

/* front_metrics_read - collect all counters for the page. Any thread.
 * process  fronts and requests are set; free them with front_metrics_read_free */
void front_metrics_read(struct metrics_process *process);
void front_metrics_read_free(struct metrics_process *process);
