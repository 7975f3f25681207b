/* Rules for ensembles: every tensor of the data flow has one producer and a user, and depends on
 * the inputs only. */
#include "base/map.h"
#include "base/mem.h"
#include "model/config_check_priv.h"
#include "model/config_platform.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

typedef Inference__ModelEnsembling__Step step_proto;

#define NO_STEP SIZE_MAX

struct use {
    struct use *next;
    size_t step;
};

struct tensor {
    const char *name;
    size_t maker;     /* the step that produces it; NO_STEP */
    struct use *uses; /* the steps that read it */
    bool ready;       /* it can be computed from the inputs, directly or through steps */
    bool is_output;
    bool visited;
};

struct graph {
    const Inference__ModelConfig *p;
    struct map tensors;
    size_t *waits; /* per step: inputs that are not ready */
};

static struct tensor *tensor_named(struct graph *g, const char *name)
{
    struct tensor *t = map_get(&g->tensors, name, strlen(name));
    if (!t) {
        t = MEM_NEW(struct tensor);
        t->name = name;
        t->maker = NO_STEP;
        map_put(&g->tensors, name, strlen(name), t);
    }
    return t;
}

static void graph_fini(struct graph *g)
{
    size_t pos = 0;
    const char *name;
    void *value;
    while (map_next(&g->tensors, &pos, &name, &value)) {
        struct tensor *t = value;
        for (struct use *u = t->uses, *next; u; u = next) {
            next = u->next;
            mem_free(u);
        }
        mem_free(t);
    }
    map_fini(&g->tensors);
    mem_free(g->waits);
}

static struct err *check_whole(const Inference__ModelConfig *p)
{
    const char *wrong = NULL;
    if (strcmp(p->platform, CONFIG_PLATFORM_ENSEMBLE) != 0)
        return err_new(STATUS_INVALID_ARG,
                       "ensemble scheduling cannot be set for model '%s' whose platform is not %s",
                       p->name, CONFIG_PLATFORM_ENSEMBLE);
    if (p->n_instance_group)
        wrong = "instance group should not be specified for ensemble";
    else if (p->optimization)
        wrong = "optimization should not be specified for ensemble";
    else if (p->n_model_warmup)
        wrong = "model_warmup can not be specified for ensemble";
    else if (p->ensemble_scheduling->n_step == 0)
        wrong = "must specify 'step' for ensemble";
    return wrong ? err_new(STATUS_INVALID_ARG, "%s '%s'", wrong, p->name) : NULL;
}

static struct err *check_ensemble_step(const Inference__ModelConfig *p, const step_proto *s,
                                       size_t index)
{
    const char *missing = !*s->model_name    ? "model_name"
                          : !s->n_input_map  ? "input_map"
                          : !s->n_output_map ? "output_map"
                                             : NULL;
    if (missing)
        return err_new(STATUS_INVALID_ARG, "must specify '%s' in step %zu of ensemble '%s'",
                       missing, index, p->name);
    if (s->model_version < -1)
        return err_new(STATUS_INVALID_ARG,
                       "'model_version' must be -1 or a version in step %zu of ensemble '%s'",
                       index, p->name);
    return NULL;
}

static struct err *config_check_ensemble_add_step(struct graph *g, const step_proto *s,
                                                  size_t index)
{
    struct err *e = check_ensemble_step(g->p, s, index);
    for (size_t i = 0; !e && i < s->n_output_map; i++) {
        struct tensor *t = tensor_named(g, s->output_map[i]->value);
        if (t->maker != NO_STEP)
            e = err_new(STATUS_INVALID_ARG,
                        "ensemble tensor '%s' can appear in an output map only once for ensemble "
                        "'%s' step %zu",
                        t->name, g->p->name, index);
        t->maker = index;
    }
    for (size_t i = 0; !e && i < s->n_input_map; i++) {
        struct tensor *t = tensor_named(g, s->input_map[i]->value);
        struct use *u = MEM_NEW(struct use);
        *u = (struct use){t->uses, index};
        t->uses = u;
        g->waits[index]++;
    }
    return e;
}

static struct err *config_check_ensemble_build(struct graph *g)
{
    const Inference__ModelEnsembling *en = g->p->ensemble_scheduling;
    struct err *e = NULL;
    g->waits = mem_zalloc(en->n_step * sizeof(*g->waits));
    for (size_t i = 0; !e && i < en->n_step; i++)
        e = config_check_ensemble_add_step(g, en->step[i], i);
    return e;
}

/* Tensors that became ready and whose users must be updated; each tensor is in it at most once. */
struct queue {
    struct tensor **items;
    size_t count;
};

static void mark_ready(struct queue *q, struct tensor *t)
{
    if (t->ready)
        return;
    t->ready = true;
    q->items[q->count++] = t;
}

static void spread(struct graph *g, struct queue *q)
{
    while (q->count) {
        struct tensor *t = q->items[--q->count];
        for (struct use *u = t->uses; u; u = u->next) {
            if (--g->waits[u->step] > 0)
                continue;
            const step_proto *s = g->p->ensemble_scheduling->step[u->step];
            for (size_t i = 0; i < s->n_output_map; i++)
                mark_ready(q, tensor_named(g, s->output_map[i]->value));
        }
    }
}

static struct err *flow(struct graph *g)
{
    const Inference__ModelConfig *p = g->p;
    struct queue q = {mem_alloc((g->tensors.count + 1) * sizeof(struct tensor *)), 0};
    struct err *e = NULL;
    for (size_t i = 0; !e && i < p->n_input; i++) {
        struct tensor *t = map_get(&g->tensors, p->input[i]->name, strlen(p->input[i]->name));
        if (t)
            mark_ready(&q, t);
        else
            e = err_new(STATUS_INVALID_ARG, "ensemble input '%s' for ensemble %s' is not used",
                        p->input[i]->name, p->name);
    }
    if (!e)
        spread(g, &q);
    mem_free(q.items);
    return e;
}

/* unready_source - follow a tensor that is not ready back to one that nothing produces, or once
 * around a circle. */
static struct tensor *unready_source(struct graph *g, struct tensor *t)
{
    for (;;) {
        t->visited = true;
        struct tensor *up = NULL;
        const step_proto *s =
            t->maker == NO_STEP ? NULL : g->p->ensemble_scheduling->step[t->maker];
        for (size_t i = 0; s && !up && i < s->n_input_map; i++) {
            struct tensor *candidate = tensor_named(g, s->input_map[i]->value);
            if (!candidate->ready && !candidate->visited)
                up = candidate;
        }
        if (!up)
            return t;
        t = up;
    }
}

static struct err *check_ensemble_outputs(struct graph *g)
{
    const Inference__ModelConfig *p = g->p;
    for (size_t i = 0; i < p->n_output; i++) {
        const char *name = p->output[i]->name;
        struct tensor *t = map_get(&g->tensors, name, strlen(name));
        if (!t)
            return err_new(STATUS_INVALID_ARG, "ensemble output '%s' for ensemble %s' is not used",
                           name, p->name);
        t->is_output = true;
        if (t->ready)
            continue;
        const struct tensor *source = unready_source(g, t);
        if (source == t)
            return err_new(STATUS_INVALID_ARG, "output '%s' for ensemble '%s' is not written", name,
                           p->name);
        return err_new(STATUS_INVALID_ARG,
                       "output '%s' for ensemble '%s' is not written: at least one of its "
                       "depending tensors, '%s', is not connected",
                       name, p->name, source->name);
    }
    return NULL;
}

static struct err *check_unused(struct graph *g)
{
    size_t pos = 0;
    const char *name;
    void *value;
    while (map_next(&g->tensors, &pos, &name, &value)) {
        const struct tensor *t = value;
        if (!t->is_output && (!t->ready || !t->uses))
            return err_new(STATUS_INVALID_ARG, "ensemble tensor '%s' is unused in ensemble '%s'",
                           t->name, g->p->name);
    }
    return NULL;
}

struct err *config_check_ensemble_rules(const Inference__ModelConfig *p)
{
    struct err *e = check_whole(p);
    if (e)
        return e;
    struct graph g = {.p = p, .tensors = MAP_INIT};
    e = config_check_ensemble_build(&g);
    if (!e)
        e = flow(&g);
    if (!e)
        e = check_ensemble_outputs(&g);
    if (!e)
        e = check_unused(&g);
    graph_fini(&g);
    return e;
}
