#include "serve/instances.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "gpu/gpu_memory.h"
#include "model/config.h"
#include "os/process/cpu_bind.h"
#include "plugin/host_policy.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/version.h"
#include "serve/warmup.h"

#include <string.h>

typedef Inference__ModelInstanceGroup group_proto;

/* A set of instances that is being prepared: some are reused, some are new. */
struct instances_draft {
    struct serve_version *version;
    struct model_config *config; /* a reference */
    struct warmup *warmup;
    struct instances next;
    struct instances made; /* the instances of `next` that are new */
    struct instances left; /* the old instances that `next` does not use */
};

/* Each instance of a group on GPUs is there once for every GPU. */
static uint32_t instances_places_of(const group_proto *group)
{
    bool gpus = (int)group->kind == INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU;
    return gpus ? (uint32_t)group->n_gpus : 1;
}

static uint32_t total_of(const Inference__ModelConfig *proto)
{
    uint32_t total = 0;
    for (size_t g = 0; g < proto->n_instance_group; g++)
        total += (uint32_t)proto->instance_group[g]->count *
                 instances_places_of(proto->instance_group[g]);
    return total;
}

static void instances_make_room(struct instances *set, uint32_t total)
{
    set->runners = mem_zalloc((total + 1) * sizeof(struct runner *));
    set->passive = mem_zalloc((total + 1) * sizeof(struct plugin_instance *));
}

static void drop_lists(struct instances *set)
{
    mem_free(set->runners);
    mem_free(set->passive);
    *set = (struct instances){0};
}

static TRITONSERVER_InstanceGroupKind instances_kind(const group_proto *group)
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

/* The group as bytes, without its name, its number of instances and its GPUs, so that what two
 * groups say about one instance can be compared. The caller frees it (mem_free). */
static uint8_t *signature_of(const group_proto *group, size_t *ret_len)
{
    group_proto plain = *group;
    plain.name = (char *)(uintptr_t)protobuf_c_empty_string;
    plain.count = 0;
    plain.n_gpus = 0;
    *ret_len = inference__model_instance_group__get_packed_size(&plain);
    uint8_t *bytes = mem_alloc(*ret_len + 1);
    inference__model_instance_group__pack(&plain, bytes);
    return bytes;
}

static bool serves_as(const struct plugin_instance *i, const group_proto *group, int32_t device)
{
    if (i->device != device)
        return false;
    size_t len_a;
    size_t len_b;
    uint8_t *a = signature_of(i->group, &len_a);
    uint8_t *b = signature_of(group, &len_b);
    bool same = len_a == len_b && memcmp(a, b, len_a) == 0;
    mem_free(a);
    mem_free(b);
    return same;
}

/* Moves an old instance that fits the group and the device from `left` to `next`. Returns false if
 * none fits. */
static bool reuse(struct instances_draft *d, const group_proto *group, int32_t device)
{
    struct instances *left = &d->left;
    uint32_t at = 0;
    if (group->passive) {
        while (at < left->passive_count && !serves_as(left->passive[at], group, device))
            at++;
        if (at == left->passive_count)
            return false;
        d->next.passive[d->next.passive_count++] = left->passive[at];
        left->passive_count--;
        memmove(&left->passive[at], &left->passive[at + 1],
                (left->passive_count - at) * sizeof(struct plugin_instance *));
        return true;
    }
    while (at < left->runner_count && !serves_as(left->runners[at]->instance, group, device))
        at++;
    if (at == left->runner_count)
        return false;
    d->next.runners[d->next.runner_count++] = left->runners[at];
    left->runner_count--;
    memmove(&left->runners[at], &left->runners[at + 1],
            (left->runner_count - at) * sizeof(struct runner *));
    return true;
}

/* Runs the warm-up samples. They run like requests: under the host policy, and with the
 * resources that the instance needs. */
static struct err *warm(const struct instances_draft *d, struct runner *r)
{
    struct scheduler *s = d->version->scheduler;
    struct cpu_bind *was;
    struct err *e = host_policy_enter(r->instance->policy, &was);
    if (e)
        return e;
    if (s->ops.hold)
        s->ops.hold(s, r);
    e = warmup_run(d->warmup, d->version, r->instance);
    if (s->ops.release)
        s->ops.release(s, r);
    cpu_bind_restore(was);
    return e ? err_wrap(e, "instance '%s'", r->instance->name) : NULL;
}

/* Makes the runner of an instance. It owns the instance, which is freed on error too. */
static struct err *make_runner(struct instances_draft *d, struct plugin_instance *i)
{
    struct scheduler *s = d->version->scheduler;
    struct runner *r = runner_new(d->version, i);
    struct err *e = s->ops.equip ? s->ops.equip(s, r, d->config->proto) : NULL;
    if (!e && d->warmup)
        e = warm(d, r);
    if (e) {
        runner_free(r);
        return e;
    }
    d->next.runners[d->next.runner_count++] = r;
    d->made.runners[d->made.runner_count++] = r;
    return NULL;
}

/* As in the reference, a GPU that is too full once the instance is there refuses the instance. */
static struct err *check_room(struct plugin_instance *i)
{
    if (i->kind != TRITONSERVER_INSTANCEGROUPKIND_GPU || gpu_memory_allows(i->device))
        return NULL;
    return err_new(STATUS_UNAVAILABLE,
                   "can not create model '%s': memory limit set for GPU %d has exceeded, model "
                   "loading is rejected.",
                   i->name, i->device);
}

static struct err *instances_make(struct instances_draft *d, const group_proto *group,
                                  int32_t index, int32_t device)
{
    struct serve_version *v = d->version;
    TRITONSERVER_InstanceGroupKind kind = instances_kind(group);
    struct strbuf name = STRBUF_INIT;
    strbuf_printf(&name, "%s_%d", group->name, index);
    struct plugin_instance *i = NULL;
    struct err *e =
        instance_new(v->model, v->stats, strbuf_str(&name), kind, device, group, v->policies, &i);
    if (!e)
        e = check_room(i);
    if (e) {
        instance_free(i);
    } else if (group->passive) {
        d->next.passive[d->next.passive_count++] = i;
        d->made.passive[d->made.passive_count++] = i;
    } else {
        e = make_runner(d, i);
    }
    strbuf_fini(&name);
    return e;
}

/* A copy of the arrays of a set; the instances are shared. */
static struct instances copy_of(const struct instances *set)
{
    struct instances copy = {.runner_count = set->runner_count,
                             .passive_count = set->passive_count};
    instances_make_room(&copy, set->runner_count + set->passive_count);
    if (set->runner_count)
        memcpy(copy.runners, set->runners, set->runner_count * sizeof(struct runner *));
    if (set->passive_count)
        memcpy(copy.passive, set->passive, set->passive_count * sizeof(struct plugin_instance *));
    return copy;
}

/* The instances of a group with this index: one, or one on each GPU. */
static struct err *put_each(struct instances_draft *d, const group_proto *group, int32_t index)
{
    struct err *e = NULL;
    for (uint32_t k = 0; !e && k < instances_places_of(group); k++) {
        int32_t device = group->n_gpus ? group->gpus[k] : 0;
        if (!reuse(d, group, device))
            e = instances_make(d, group, index, device);
    }
    return e;
}

static struct err *put_together(struct instances_draft *d, const Inference__ModelConfig *proto)
{
    struct err *e = NULL;
    for (size_t g = 0; g < proto->n_instance_group; g++)
        for (int32_t i = 0; !e && i < proto->instance_group[g]->count; i++)
            e = put_each(d, proto->instance_group[g], i);
    return e;
}

struct err *instances_prepare(struct serve_version *v, struct model_config *config,
                              struct instances_draft **ret)
{
    struct instances_draft *d = MEM_NEW(struct instances_draft);
    uint32_t total = total_of(config->proto);
    d->version = v;
    d->config = config_ref(config);
    d->left = copy_of(&v->instances);
    instances_make_room(&d->next, total);
    instances_make_room(&d->made, total);
    struct err *e = warmup_new(v, &d->warmup);
    if (!e)
        e = put_together(d, config->proto);
    warmup_free(d->warmup);
    if (e) {
        instances_abandon(d);
        return e;
    }
    *ret = d;
    return NULL;
}

/* Adds a runner to the version. An instance that is bound to cores, or that may block, needs its
 * own thread, so it turns inline execution off. */
static void instances_join(struct serve_version *v, struct runner *r)
{
    v->inline_ok =
        v->inline_ok && r->instance->inline_ok && !host_policy_binds(r->instance->policy);
    runner_join(r);
}

void instances_commit(struct instances_draft *d, struct instances *ret_left)
{
    struct serve_version *v = d->version;
    if (v->model) /* an ensemble has none */
        model_publish_config(v->model, d->config);
    mutex_lock(&v->lock);
    struct instances old = v->instances;
    struct model_config *was = v->shown;
    v->instances = d->next;
    v->shown = d->config;
    for (uint32_t i = 0; i < v->instances.runner_count; i++)
        instances_join(v, v->instances.runners[i]);
    for (uint32_t i = 0; i < d->left.runner_count; i++)
        runner_leave(d->left.runners[i]);
    if (v->scheduler->ops.commit)
        v->scheduler->ops.commit(v->scheduler, d->config->proto);
    runner_wake(v, clock_now_ns());
    mutex_unlock(&v->lock);
    config_unref(was);
    drop_lists(&old);
    drop_lists(&d->made);
    *ret_left = d->left;
    mem_free(d);
}

void instances_abandon(struct instances_draft *d)
{
    if (!d)
        return;
    instances_free(&d->made);
    drop_lists(&d->next);
    drop_lists(&d->left);
    config_unref(d->config);
    mem_free(d);
}

bool instances_idle(struct serve_version *v, const struct instances *left)
{
    bool idle = true;
    mutex_lock(&v->lock);
    for (uint32_t i = 0; i < left->runner_count; i++)
        idle = idle && runner_is_idle(left->runners[i]);
    mutex_unlock(&v->lock);
    return idle;
}

void instances_free(struct instances *set)
{
    for (uint32_t i = 0; i < set->runner_count; i++)
        runner_free(set->runners[i]);
    for (uint32_t i = 0; i < set->passive_count; i++)
        instance_free(set->passive[i]);
    drop_lists(set);
}
