#pragma once
/* One version of a model that is being served: its configuration, queue, instances and
 * statistics.
 *
 * Published in a snapshot (serve/table.h) when it is ready. Requests pin it; after it was
 * unpublished it drains: when no pin is left its instances are finalised. Pins are counted per
 * thread slot, so that no counter bounces between cores. */
#include "base/err.h"
#include "infer/request.h"
#include "infer/tally.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "serve/instances.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct deadline;
struct features;
struct host_policies;
struct labels;
struct loop;
struct model_config;
struct plugin_model;
struct scheduler;
struct serve_table;
struct stats;

struct serve_version {
    struct request_target target; /* first; what requests know of the version */
    uint32_t magic;
    char *name;
    int64_t number;
    struct model_config *config; /* a reference; immutable; what requests are checked against */
    struct plugin_model *model;  /* owned: the backend's side; NULL for an ensemble */
    struct scheduler *scheduler; /* owned; what is queued in it is guarded by lock */
    struct stats *stats;         /* owned */
    struct tally_part tally;     /* what its metrics go on from: see version_continue */
    struct labels **
        /* owned references; one an output, NULL where it has none; NULL = no labels at all */
        labels;
    uint32_t front_model;                 /* see front_metrics_model_id */
    uint64_t load_ns;                     /* how long loading took */
    const struct host_policies *policies; /* the server's; NULL = it has none */
    struct serve_table *table; /* where it is published; an ensemble looks its steps up there */
    bool inline_ok; /* backend and instances opted in and the server allows it: serve/runner.h */

    struct mutex lock;          /* rank SCHEDULER; guards the scheduler, runners and what follows */
    struct instances instances; /* owned; replaced as a whole by instances_commit */
    struct model_config *shown; /* a reference: config, with the instance groups of now */
    bool waking;                /* a runner was woken and has not looked at the queue yet */
    /* the earliest time at which a waiting runner looks again; TIME_NEVER = none does */
    time_ns timed_until;
    bool stopping;
    struct deadline *deadline; /* owned; see serve/deadline.h */

    struct {
        _Alignas(64) atomic_ulong pinned; /* how often, so far */
        atomic_ulong unpinned;
    } slots[THREAD_SLOTS];
    /* set before the pins are summed: an unpin that follows wakes version_drain */
    atomic_bool draining;
    struct mutex drain_lock; /* rank LEAF */
    struct mutex_cond drained;
};

/* version_new - everything but the instances; takes config and model over, also on error.
 * allow_inline  the server's option
 * house         loop on which time-outs of queued requests are watched; NULL = nobody watches
 *               while all instances are busy
 * features      make its scheduler; borrowed for the call
 * model         NULL for an ensemble
 * errors        INVALID_ARG from the queue's settings */
struct err *version_new(const char *name, int64_t number, struct model_config *config,
                        struct plugin_model *model, bool allow_inline, struct loop *house,
                        const struct features *features, struct serve_version **ret);

/* version_start - make the instances that the configuration asks for and warm them; after it
 * requests may be submitted. Blocks.
 * errors  the backend's own, with the instance's name; version_free it then */
struct err *version_start(struct serve_version *v);

/* version_continue - its metrics go on from those of the tally, which is taken over. Before it
 * is published. */
void version_continue(struct serve_version *v, struct tally *t);

/* version_shown - the configuration to show: a reference, the caller's (config_unref). Any
 * thread that holds a pin. */
struct model_config *version_shown(struct serve_version *v);

/* version_of - the version that a request is for. */
static inline struct serve_version *version_of(const struct request *r)
{
    return (struct serve_version *)r->target;
}

/* version_labels - the labels of an output; NULL when it has none. Any thread that holds a pin. */
const struct labels *version_labels(const struct serve_version *v, const char *output);

/* version_free_labels - an array as in serve_version; NULL is fine. */
void version_free_labels(struct labels **labels, uint32_t count);

/* version_pin, version_unpin - hold it for a request. Pin only under a snapshot that publishes
 * it, or while holding a pin. Any thread. */
void version_pin(struct serve_version *v);
void version_unpin(struct serve_version *v);

/* version_drain - wait until no pin is left. The version must be unpublished. Blocks. */
void version_drain(struct serve_version *v);

/* version_drained - whether no pin is left. The version must be unpublished, and no loop may
 * hold a snapshot that has it. */
bool version_drained(struct serve_version *v);

/* version_pins - how many hold it; what it says is exact once nothing can pin it any more. */
long version_pins(struct serve_version *v);

/* version_free - stop the instance threads, finalise instances and model. Drained, or never
 * published. NULL is fine. Blocks. */
void version_free(struct serve_version *v);
