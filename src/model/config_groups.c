#include "model/config_groups.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/pb_field.h"
#include "model/config_platform.h"
#include "proto/model_config.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define KIND(k) ((int)INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_##k)

/* More instances of one model are surely a mistake. */
#define COUNT_MAX 4096

static const struct config_groups_machine no_machine;

static bool is_ensemble(const Inference__ModelConfig *p)
{
    return p->scheduling_choice_case ==
           INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

static bool has_gpu(const struct config_groups_machine *m, int32_t id)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i] == id)
            return true;
    return false;
}

/* set_gpus - set the ids of the GPUs that exist, or all ids if `only_present` is false. */
static void set_gpus(Inference__ModelInstanceGroup *g, const int32_t *ids, size_t count,
                     const struct config_groups_machine *m, bool only_present)
{
    mem_free(g->gpus);
    g->gpus = mem_alloc(count * sizeof(*ids));
    g->n_gpus = 0;
    for (size_t i = 0; i < count; i++)
        if (!only_present || has_gpu(m, ids[i]))
            g->gpus[g->n_gpus++] = ids[i];
}

/* add_group - add the group of a configuration that has none: the first possible wish, else an
 * empty group. */
static void add_group(Inference__ModelConfig *p, const struct config_groups_machine *m)
{
    p->instance_group = mem_alloc(sizeof(*p->instance_group));
    p->n_instance_group = 1;
    Inference__ModelInstanceGroup *g = p->instance_group[0] = mem_alloc(sizeof(*g));
    inference__model_instance_group__init(g);
    pb_field_set_string(&g->name, p->name);
    for (size_t i = 0; i < m->wish_count; i++) {
        const struct config_groups_wish *w = &m->wishes[i];
        if (w->kind == KIND(GPU) && m->gpu_count == 0)
            continue;
        if (w->gpu_count && (w->kind == KIND(GPU) || w->kind == KIND(AUTO)))
            set_gpus(g, w->gpus, w->gpu_count, m, w->kind == KIND(GPU));
        g->kind = (Inference__ModelInstanceGroup__Kind)w->kind;
        g->count = w->count;
        return;
    }
}

/* False if the backend says that it runs elsewhere only. */
static bool runs_on_gpus(const struct config_groups_wish *wishes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wishes[i].kind == KIND(GPU) || wishes[i].kind == KIND(AUTO))
            return true;
    return count == 0;
}

bool config_groups_ask(const Inference__ModelConfig *proto, const struct config_groups_wish *wishes,
                       size_t wish_count)
{
    bool any = runs_on_gpus(wishes, wish_count);
    bool asks = proto->n_instance_group == 0 && any;
    for (size_t i = 0; i < proto->n_instance_group; i++) {
        int kind = (int)proto->instance_group[i]->kind;
        asks = asks || kind == KIND(GPU) || (kind == KIND(AUTO) && any);
    }
    return asks && !is_ensemble(proto);
}

static void settle_kind(Inference__ModelInstanceGroup *g, const struct config_groups_machine *m)
{
    if ((int)g->kind != KIND(AUTO))
        return;
    bool present = m->gpu_count > 0 && runs_on_gpus(m->wishes, m->wish_count);
    for (size_t i = 0; i < g->n_gpus; i++)
        present = present && has_gpu(m, g->gpus[i]);
    g->kind = present ? INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU
                      : INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_CPU;
}

/* The reference's number of instances if nothing is configured. */
static int32_t usual_count(const Inference__ModelConfig *p, const Inference__ModelInstanceGroup *g)
{
    bool two = strcmp(p->backend, "onnxruntime") == 0 || strcmp(p->backend, "tensorflow") == 0;
    return two && (int)g->kind == KIND(CPU) ? 2 : 1;
}

static void fill_group(const Inference__ModelConfig *p, Inference__ModelInstanceGroup *g,
                       const struct config_groups_machine *m)
{
    settle_kind(g, m);
    for (size_t i = 0; i < m->wish_count; i++) {
        const struct config_groups_wish *w = &m->wishes[i];
        if ((int)g->kind != w->kind)
            continue;
        if ((int)g->kind == KIND(GPU) && g->n_gpus == 0 && w->gpu_count) {
            set_gpus(g, w->gpus, w->gpu_count, m, true);
            if (g->n_gpus == 0)
                continue;
        }
        if (g->count < 1 && w->count > 0)
            g->count = w->count;
    }
    if (g->count < 1)
        g->count = usual_count(p, g);
    if ((int)g->kind == KIND(GPU) && g->n_gpus == 0)
        set_gpus(g, m->gpus, m->gpu_count, m, false);
}

void config_groups_fill(Inference__ModelConfig *proto, const struct config_groups_machine *machine)
{
    const struct config_groups_machine *m = machine ? machine : &no_machine;
    if (is_ensemble(proto))
        return;
    if (proto->n_instance_group == 0)
        add_group(proto, m);
    for (size_t i = 0; i < proto->n_instance_group; i++) {
        Inference__ModelInstanceGroup *g = proto->instance_group[i];
        if (!*g->name) {
            struct strbuf name = STRBUF_INIT;
            strbuf_printf(&name, "%s_%zu", proto->name, i);
            pb_field_set_string(&g->name, strbuf_str(&name));
            strbuf_fini(&name);
        }
        fill_group(proto, g, m);
    }
}

static struct err *check_gpus(const Inference__ModelConfig *p,
                              const Inference__ModelInstanceGroup *g,
                              const struct config_groups_machine *m)
{
    if (g->n_gpus == 0)
        return err_new(STATUS_INVALID_ARG, "instance group %s of model %s has kind KIND_GPU but %s",
                       g->name, p->name,
                       m->gpu_count ? "specifies no GPUs" : "no GPUs are available");
    for (size_t i = 0; i < g->n_gpus; i++) {
        if (has_gpu(m, g->gpus[i]))
            continue;
        struct strbuf ids = STRBUF_INIT;
        for (size_t k = 0; k < m->gpu_count; k++)
            strbuf_printf(&ids, "%s%d", k ? ", " : "", m->gpus[k]);
        struct err *e =
            err_new(STATUS_INVALID_ARG,
                    "instance group %s of model %s specifies invalid or unsupported gpu id %d. "
                    "GPUs with at least the "
                    "minimum required CUDA compute compatibility of %f are: %s",
                    g->name, p->name, g->gpus[i], m->min_compute_capability, strbuf_str(&ids));
        strbuf_fini(&ids);
        return e;
    }
    return NULL;
}

static struct err *check_profile(const Inference__ModelConfig *p,
                                 const Inference__ModelInstanceGroup *g)
{
    if (g->n_profile && strcmp(p->platform, "tensorrt_plan") != 0)
        return err_new(STATUS_INVALID_ARG,
                       "instance group %s of model %s and platform %sspecifies profile field "
                       "which is only supported for TensorRT "
                       "models",
                       g->name, p->name, p->platform);
    for (size_t i = 0; i < g->n_profile; i++) {
        const char *profile = g->profile[i];
        if (!*profile || profile[strspn(profile, "0123456789")] || strlen(profile) > 9)
            return err_new(STATUS_INVALID_ARG,
                           "instance group %s of model %s and platform %s specifies invalid "
                           "profile %s. The field should contain "
                           "the string representation of a non-negative integer.",
                           g->name, p->name, p->platform, profile);
    }
    return NULL;
}

static struct err *check_group(const Inference__ModelConfig *p,
                               const Inference__ModelInstanceGroup *g,
                               const struct config_groups_machine *m)
{
    struct err *e = NULL;
    if ((int)g->kind == KIND(GPU))
        e = check_gpus(p, g, m);
    else if ((int)g->kind != KIND(CPU) && (int)g->kind != KIND(MODEL))
        e = err_new(STATUS_INVALID_ARG, "instance group %s of model %s has unexpected kind %d",
                    g->name, p->name, (int)g->kind);
    else if (g->n_gpus)
        e = err_new(STATUS_INVALID_ARG,
                    "instance group %s of model %s has kind %s but specifies one or more GPUs",
                    g->name, p->name, (int)g->kind == KIND(CPU) ? "KIND_CPU" : "KIND_MODEL");
    return e ? e : check_profile(p, g);
}

struct err *config_groups_check(const Inference__ModelConfig *proto,
                                const struct config_groups_machine *machine)
{
    if (is_ensemble(proto))
        return NULL;
    if (proto->n_instance_group == 0)
        return err_new(STATUS_INVALID_ARG, "must specify one or more 'instance group's for %s",
                       proto->name);
    uint64_t total = 0;
    for (size_t i = 0; i < proto->n_instance_group; i++) {
        const Inference__ModelInstanceGroup *g = proto->instance_group[i];
        struct err *e = check_group(proto, g, machine ? machine : &no_machine);
        if (e)
            return e;
        total += (uint64_t)g->count * (g->n_gpus ? g->n_gpus : 1);
        if (total > COUNT_MAX)
            return err_new(STATUS_INVALID_ARG,
                           "instance group %s of model %s asks for instance %llu, at most %d are "
                           "possible",
                           g->name, proto->name, (unsigned long long)total, COUNT_MAX);
    }
    return NULL;
}
