#include "serve/version.h"

#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "metrics/front_metrics.h"
#include "model/config.h"
#include "model/labels.h"
#include "plugin/backend.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "serve/batcher_setup.h"
#include "serve/deadline.h"
#include "serve/runner.h"

#include <string.h>

#define VERSION_MAGIC 0x56455253u
#define DRAIN_LOOK_NS TIME_MS(2)

static void unpin_target(struct request_target *target)
{
    version_unpin((struct serve_version *)target);
}

static bool may_inline(const struct model_config *config, const struct plugin_backend *backend)
{
    const Inference__ModelDynamicBatching *d = config->proto->dynamic_batching;
    bool delays =
        config->scheduler == CONFIG_SCHEDULER_DYNAMIC && d->max_queue_delay_microseconds > 0;
    return backend->inline_ok && backend->execution_policy == TRITONBACKEND_EXECUTION_BLOCKING &&
           !config->decoupled && !delays;
}

struct err *version_new(const char *name, int64_t number, struct model_config *config,
                        struct plugin_model *model, bool allow_inline, struct loop *house,
                        struct serve_version **ret)
{
    struct serve_version *v = mem_alloc_aligned(sizeof(*v), 64);
    memset(v, 0, sizeof(*v));
    v->target = (struct request_target){.config = config, .unpin = unpin_target};
    v->magic = VERSION_MAGIC;
    v->name = mem_strdup(name);
    v->front_model = front_metrics_model_id(name);
    v->number = number;
    v->config = config;
    v->model = model;
    v->stats = stats_new();
    v->inline_ok = allow_inline && may_inline(config, model->backend);
    v->timed_until = TIME_NEVER;
    mutex_init(&v->lock, MUTEX_RANK_SCHEDULER);
    v->ordered = config->scheduler == CONFIG_SCHEDULER_DYNAMIC &&
                 config->proto->dynamic_batching->preserve_ordering;
    mutex_init(&v->gate_lock, MUTEX_RANK_LEAF);
    order_gate_init(&v->gate);
    mutex_init(&v->drain_lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&v->drained);
    v->deadline = deadline_new(v, house);
    struct err *e = batcher_setup_new(config, &v->batcher);
    if (e) {
        version_free(v);
        return err_wrap(e, "model '%s'", name);
    }
    *ret = v;
    return NULL;
}

static uint32_t instance_total(const Inference__ModelConfig *proto)
{
    uint32_t total = 0;
    for (size_t g = 0; g < proto->n_instance_group; g++)
        total += (uint32_t)proto->instance_group[g]->count;
    return total;
}

static TRITONSERVER_InstanceGroupKind kind_of(const Inference__ModelInstanceGroup *group)
{
    switch ((int)group->kind) {
    case INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU:
        return TRITONSERVER_INSTANCEGROUPKIND_GPU;
    case INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_MODEL:
        return TRITONSERVER_INSTANCEGROUPKIND_MODEL;
    default: /* KIND_AUTO was resolved when the configuration was completed */
        return TRITONSERVER_INSTANCEGROUPKIND_CPU;
    }
}

static struct err *add_instance(struct serve_version *v, const Inference__ModelInstanceGroup *group,
                                int32_t index)
{
    struct strbuf name = STRBUF_INIT;
    strbuf_printf(&name, group->count > 1 ? "%s_%d" : "%s", group->name, index);
    struct plugin_instance *i = NULL;
    struct err *e =
        instance_new(v->model, v->stats, strbuf_str(&name), kind_of(group), 0, group, &i);
    if (e)
        e = err_wrap(e, "instance '%s'", strbuf_str(&name));
    else if (group->passive)
        v->passive[v->passive_count++] = i;
    else
        runner_init(&v->runners[v->runner_count++], v, i);
    strbuf_fini(&name);
    return e;
}

struct err *version_start(struct serve_version *v)
{
    const Inference__ModelConfig *proto = v->config->proto;
    uint32_t total = instance_total(proto);
    v->runners = mem_zalloc(total * sizeof(*v->runners));
    v->passive = mem_zalloc(total * sizeof(struct plugin_instance *));
    for (size_t g = 0; g < proto->n_instance_group; g++)
        for (int32_t i = 0; i < proto->instance_group[g]->count; i++) {
            struct err *e = add_instance(v, proto->instance_group[g], i);
            if (e)
                return e;
        }
    return NULL;
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
    atomic_fetch_add_explicit(&v->slots[thread_slot()].pins, 1, memory_order_relaxed);
}

void version_unpin(struct serve_version *v)
{
    atomic_long *pin = &v->slots[thread_slot()].pins;
    /* Without a drain nothing of v is touched after the pin is gone: it may be freed at once. */
    if (__builtin_expect(!atomic_load_explicit(&v->draining, memory_order_acquire), 1)) {
        atomic_fetch_sub_explicit(pin, 1, memory_order_release);
        return;
    }
    mutex_lock(&v->drain_lock);
    atomic_fetch_sub_explicit(pin, 1, memory_order_release);
    mutex_cond_broadcast(&v->drained);
    mutex_unlock(&v->drain_lock);
}

/* Once nothing can pin any more the counters only fall, so the sum is never below what is really pinned. */
static long pins(struct serve_version *v)
{
    long sum = 0;
    for (unsigned i = 0; i < THREAD_SLOTS; i++)
        sum += atomic_load_explicit(&v->slots[i].pins, memory_order_acquire);
    return sum;
}

bool version_drained(struct serve_version *v)
{
    return pins(v) == 0;
}

void version_drain(struct serve_version *v)
{
    atomic_store(&v->draining, true);
    mutex_lock(&v->drain_lock);
    /* An unpin that did not see `draining` yet does not signal: look again soon. */
    while (pins(v) > 0)
        mutex_cond_wait_until(&v->drained, &v->drain_lock, clock_now_ns() + DRAIN_LOOK_NS);
    mutex_unlock(&v->drain_lock);
}

void version_free(struct serve_version *v)
{
    if (!v)
        return;
    CHECK_MAGIC(v, VERSION_MAGIC);
    deadline_free(v->deadline);
    mutex_lock(&v->lock);
    v->stopping = true;
    mutex_unlock(&v->lock);
    for (uint32_t i = 0; i < v->runner_count; i++)
        runner_fini(&v->runners[i]);
    for (uint32_t i = 0; i < v->passive_count; i++)
        instance_free(v->passive[i]);
    model_free(v->model);
    batcher_free(v->batcher);
    stats_free(v->stats);
    version_free_labels(v->labels, v->config->output_count);
    config_unref(v->config);
    mem_free(v->runners);
    mem_free(v->passive);
    mem_free(v->name);
    mutex_cond_fini(&v->drained);
    mutex_fini(&v->drain_lock);
    mutex_fini(&v->gate_lock);
    mutex_fini(&v->lock);
    v->magic = 0;
    mem_free(v);
}
