#include "serve/version.h"

#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include "infer/first_response.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "metrics/front_metrics.h"
#include "model/config.h"
#include "model/labels.h"
#include "plugin/backend.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "serve/cancel.h"
#include "serve/deadline.h"
#include "serve/features.h"
#include "serve/runner.h"
#include "serve/scheduler.h"

#include <string.h>

#define VERSION_MAGIC 0x56455253u
#define DRAIN_LOOK_NS TIME_MS(2)

static void unpin_target(struct request_target *target)
{
    version_unpin((struct serve_version *)target);
}

static bool may_inline(const struct serve_version *v, const struct plugin_backend *backend)
{
    return (backend->inline_ok || backend->entries.bell) &&
           backend->execution_policy == TRITONBACKEND_EXECUTION_BLOCKING && !v->config->decoupled &&
           v->scheduler->may_inline;
}

struct err *version_new(const char *name, int64_t number, struct model_config *config,
                        struct plugin_model *model, bool allow_inline, struct loop *house,
                        const struct features *features, struct serve_version **ret)
{
    struct serve_version *v = mem_alloc_aligned(sizeof(*v), 64);
    memset(v, 0, sizeof(*v));
    v->target = (struct request_target){.config = config,
                                        .unpin = unpin_target,
                                        .cancelled = cancel_queued,
                                        .fills_outputs = model && model->backend->fills_outputs};
    v->magic = VERSION_MAGIC;
    v->name = mem_strdup(name);
    v->front_model = front_metrics_model_id(name);
    v->number = number;
    v->config = config;
    v->shown = config_ref(config);
    v->model = model;
    v->stats = stats_new();
    v->target.first_response = first_response_new(config->proto);
    v->timed_until = TIME_NEVER;
    mutex_init(&v->lock, MUTEX_RANK_SCHEDULER);
    v->deadline = deadline_new(v, house);
    struct err *e = features_make(features, v, &v->scheduler);
    if (e) {
        version_free(v);
        return err_wrap(e, "model '%s'", name);
    }
    v->inline_ok = allow_inline && model && may_inline(v, model->backend);
    *ret = v;
    return NULL;
}

struct err *version_start(struct serve_version *v)
{
    struct instances_draft *draft;
    struct instances none;
    struct err *e = instances_prepare(v, v->config, &draft);
    if (e) {
        version_drain(v); /* samples of a warm-up that failed may still be in flight */
        return e;
    }
    instances_commit(draft, &none);
    instances_free(&none);
    return NULL;
}

void version_continue(struct serve_version *v, struct tally *t)
{
    tally_join(t, &v->tally, v->stats, v->target.first_response);
}

struct model_config *version_shown(struct serve_version *v)
{
    mutex_lock(&v->lock);
    struct model_config *shown = config_ref(v->shown);
    mutex_unlock(&v->lock);
    return shown;
}

const struct labels *version_labels(const struct serve_version *v, const char *output)
{
    int32_t i = v->labels ? config_output(v->config, output, strlen(output)) : -1;
    return i >= 0 ? v->labels[i] : NULL;
}

void version_free_labels(struct labels **labels, uint32_t count)
{
    for (uint32_t i = 0; labels && i < count; i++)
        labels_free(labels[i]);
    mem_free(labels);
}

void version_pin(struct serve_version *v)
{
    CHECK_MAGIC(v, VERSION_MAGIC);
    atomic_fetch_add_explicit(&v->slots[thread_slot()].pinned, 1, memory_order_relaxed);
}

/* v is not touched after the pin is released: it may be freed at once. */
void version_unpin(struct serve_version *v)
{
    atomic_fetch_add_explicit(&v->slots[thread_slot()].unpinned, 1, memory_order_release);
}

/* A holder of a pin may take another one at any time, so the two sums change while they are
 * made. The sum of unpins is made first, so it is at most the true number at that moment; the
 * sum of pins is made later, so it is at least the true number at that moment. If they are
 * equal, no pin was left then, and no new one can follow. */
long version_pins(struct serve_version *v)
{
    unsigned long unpinned = 0;
    unsigned long pinned = 0;
    for (unsigned i = 0; i < THREAD_SLOTS; i++)
        unpinned += atomic_load_explicit(&v->slots[i].unpinned, memory_order_acquire);
    for (unsigned i = 0; i < THREAD_SLOTS; i++)
        pinned += atomic_load_explicit(&v->slots[i].pinned, memory_order_acquire);
    return (long)(pinned - unpinned);
}

long version_requests(struct serve_version *v)
{
    return version_pins(v) - (long)atomic_load_explicit(&v->parting, memory_order_relaxed);
}

void version_part(struct serve_version *v)
{
    struct scheduler *s = v->scheduler;
    long requests = version_requests(v);
    if (!s->ops.part || requests < 0)
        return;
    mutex_lock(&v->lock);
    s->ops.part(s, (size_t)requests);
    mutex_unlock(&v->lock);
}

bool version_drained(struct serve_version *v)
{
    return version_pins(v) == 0;
}

void version_drain(struct serve_version *v)
{
    struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
    struct mutex_cond never; /* signalled: an unpin that signals would touch v */
    mutex_cond_init(&never);
    mutex_lock(&lock);
    while (!version_drained(v))
        mutex_cond_wait_until(&never, &lock, clock_now_ns() + DRAIN_LOOK_NS);
    mutex_unlock(&lock);
    mutex_cond_fini(&never);
    mutex_fini(&lock);
}

const char *version_busy(struct serve_version *v)
{
    const char *name = NULL;
    mutex_lock(&v->lock);
    for (uint32_t i = 0; !name && i < v->instances.runner_count; i++)
        if (v->instances.runners[i]->state != RUNNER_IDLE)
            name = v->instances.runners[i]->instance->name;
    mutex_unlock(&v->lock);
    return name;
}

void version_halt(struct serve_version *v)
{
    CHECK_MAGIC(v, VERSION_MAGIC);
    deadline_free(v->deadline);
    v->deadline = NULL;
    mutex_lock(&v->lock);
    bool first = !v->stopping;
    v->stopping = true;
    if (first && v->scheduler && v->scheduler->ops.stop)
        v->scheduler->ops.stop(v->scheduler);
    mutex_unlock(&v->lock);
    for (uint32_t i = 0; i < v->instances.runner_count; i++)
        runner_halt(v->instances.runners[i]);
}

void version_free(struct serve_version *v)
{
    if (!v)
        return;
    version_halt(v);
    instances_free(&v->instances);
    scheduler_free(v->scheduler); /* before the model, because the scheduler may ask its strategy */
    model_free(v->model);
    front_metrics_model_left(v->front_model);
    tally_leave(&v->tally);
    stats_free(v->stats);
    first_response_free(v->target.first_response);
    version_free_labels(v->labels, v->config->output_count);
    config_unref(v->shown);
    config_unref(v->config);
    mem_free(v->name);
    mutex_fini(&v->lock);
    v->magic = 0;
    mem_free(v);
}
