#pragma once
/* One version of a model that is being served: configuration, queue, instances and statistics.
 *
 * It is published in a snapshot (serve/table.h) when it is ready. Requests pin it. After it was
 * unpublished it drains: when no pin is left, its instances are finalised. Pins are counted per
 * thread slot, so that cores do not share one counter. */
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
    struct request_target target; /* first member; what requests know of the version */
    uint32_t magic;
    char *name;
    int64_t number;
    struct model_config *config; /* a reference; immutable; requests are checked against it */
    struct plugin_model *model;  /* owned: the backend's model; NULL for an ensemble */
    struct scheduler *scheduler; /* owned; its queue is guarded by lock */
    struct stats *stats;         /* owned */
    struct tally_part tally;     /* counters that its metrics continue from, see version_continue */
    /* owned references, one per output, NULL where it has none; NULL = no labels at all */
    struct labels **labels;
    uint32_t front_model;                 /* see front_metrics_model_id */
    uint64_t load_ns;                     /* how long loading took, in ns */
    const struct host_policies *policies; /* the server's; NULL = it has none */
    struct serve_table *table; /* where it is published; an ensemble looks its steps up in it */
    bool inline_ok; /* inline runs are allowed by backend, instances and server: serve/runner.h */

    /* rank SCHEDULER; guards the scheduler, the runners and the fields below */
    struct mutex lock;
    struct instances instances; /* owned; replaced as a whole by instances_commit */
    struct model_config *shown; /* a reference: config with the current instance groups */
    bool waking;                /* a woken runner has not looked at the queue yet */
    /* the earliest time at which a waiting runner looks at the queue again; TIME_NEVER = none
     * does */
    time_ns timed_until;
    bool stopping;
    /* pins that are no requests, but sets of instances that leave; relaxed: it only counts */
    atomic_uint parting;
    struct deadline *deadline; /* owned; see serve/deadline.h */

    struct {
        _Alignas(64) atomic_ulong pinned; /* how many pins were ever taken */
        atomic_ulong unpinned;
    } slots[THREAD_SLOTS];
};

/* version_new - make a version without its instances. It owns config and model, which are freed
 * on error too.
 * allow_inline  the server's option
 * house         the loop that watches timeouts of queued requests; NULL = nobody watches them
 *               while all instances are busy
 * features      they make its scheduler; borrowed for the call
 * model         NULL for an ensemble
 * errors        INVALID_ARG from the queue's settings */
struct err *version_new(const char *name, int64_t number, struct model_config *config,
                        struct plugin_model *model, bool allow_inline, struct loop *house,
                        const struct features *features, struct serve_version **ret);

/* version_start - make the instances that the configuration asks for and warm them up. After it,
 * requests may be submitted. Blocks.
 * errors  the backend's own, with the instance's name; the caller then calls version_free */
struct err *version_start(struct serve_version *v);

/* version_continue - let the metrics of v continue from those of t, which v now owns. Call it
 * before v is published. */
void version_continue(struct serve_version *v, struct tally *t);

/* version_shown - the configuration that clients see, as a reference of the caller's
 * (config_unref). Any thread that holds a pin. */
struct model_config *version_shown(struct serve_version *v);

/* version_of - the version that a request is for. */
static inline struct serve_version *version_of(const struct request *r)
{
    return (struct serve_version *)r->target;
}

/* version_labels - the labels of an output; NULL when it has none. Any thread that holds a pin. */
const struct labels *version_labels(const struct serve_version *v, const char *output);

/* version_free_labels - free an array as in serve_version. NULL is fine. */
void version_free_labels(struct labels **labels, uint32_t count);

/* version_pin, version_unpin - keep v loaded while a request uses it. Take a pin only under a
 * snapshot that publishes v, or while holding a pin. Any thread. */
void version_pin(struct serve_version *v);
void version_unpin(struct serve_version *v);

/* version_drain - wait until no pin is left. The version must be unpublished. Blocks. */
void version_drain(struct serve_version *v);

/* version_drained - true if no pin is left. v must be unpublished, and no loop may hold a
 * snapshot that contains it. */
bool version_drained(struct serve_version *v);

/* version_pins - the number of pins. It is exact once nothing can take a new pin.
 * version_requests - the same without those for instances that leave: requests, and one more for
 * each loop that runs the model just now. Takes no lock: a batching strategy that does not return
 * holds the version's, and whoever stops the server asks for this. */
long version_pins(struct serve_version *v);
long version_requests(struct serve_version *v);

/* version_part - v is unpublished and not drained: nothing in it is to wait for requests that will
 * not come. */
void version_part(struct serve_version *v);

/* version_busy - the name of an instance that is at work, valid as long as the version; NULL if
 * there is none. */
const char *version_busy(struct serve_version *v);

/* version_halt - what version_free does first: end the instance threads. Blocks as long as an
 * instance executes. */
void version_halt(struct serve_version *v);

/* version_free - end the instance threads, finalise instances and model. v must be drained, or
 * was never published. NULL is fine. Blocks. */
void version_free(struct serve_version *v);
