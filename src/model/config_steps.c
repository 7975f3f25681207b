#include "model/config_steps.h"

#include "base/map.h"
#include "base/mem.h"
#include "model/shape.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

typedef Inference__ModelEnsembling__Step step_proto;

/* A tensor of the ensemble, as the first model that uses it describes it. */
struct tensor {
    const char *model; /* the model that described it */
    Inference__DataType type;
    const int64_t *dims; /* without the batch dimension */
    size_t rank;
    bool batched;
    bool known;   /* it has a label */
    size_t label; /* the decoupled step from whose responses it is computed; 0 = none */
};

struct steps {
    const Inference__ModelConfig *p;
    config_steps_find_fn *find;
    void *owner;
    struct map tensors;
};

static bool same_dims(const int64_t *a, size_t rank_a, const int64_t *b, size_t rank_b)
{
    if (rank_a != rank_b)
        return false;
    for (size_t i = 0; i < rank_a; i++)
        if (a[i] != b[i] && a[i] != SHAPE_ANY && b[i] != SHAPE_ANY)
            return false;
    return true;
}

/* True if the shapes are equal when the one with a batch dimension is written in full. */
static bool same_in_full(const struct tensor *a, const struct tensor *b)
{
    if (a->batched == b->batched)
        return same_dims(a->dims, a->rank, b->dims, b->rank);
    const struct tensor *batched = a->batched ? a : b;
    const struct tensor *plain = a->batched ? b : a;
    return plain->rank > 0 &&
           same_dims(batched->dims, batched->rank, plain->dims + 1, plain->rank - 1);
}

static void put_full(struct strbuf *sb, const struct tensor *t)
{
    int64_t *full = mem_alloc((t->rank + 1) * sizeof(*full));
    full[0] = SHAPE_ANY;
    if (t->rank)
        memcpy(full + t->batched, t->dims, t->rank * sizeof(*full));
    shape_print(sb, full, t->rank + t->batched);
    mem_free(full);
}

static const char *type_name(Inference__DataType type)
{
    const ProtobufCEnumValue *v =
        protobuf_c_enum_descriptor_get_value(&inference__data_type__descriptor, (int)type);
    return v ? v->name : "TYPE_INVALID";
}

static struct err *config_steps_compare(const struct steps *s, const char *name,
                                        const struct tensor *was, const struct tensor *now)
{
    if (was->type != now->type)
        return err_new(STATUS_INVALID_ARG,
                       "in ensemble %s, ensemble tensor %s: inconsistent data type: %s is inferred "
                       "from model %s while %s is inferred from model %s",
                       s->p->name, name, type_name(was->type), was->model, type_name(now->type),
                       now->model);
    if (same_dims(was->dims, was->rank, now->dims, now->rank) || same_in_full(was, now))
        return NULL;
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    put_full(&a, was);
    put_full(&b, now);
    struct err *e =
        err_new(STATUS_INVALID_ARG,
                "in ensemble %s, ensemble tensor %s: inconsistent shape: %s is "
                "inferred from model %s while %s is inferred from model %s",
                s->p->name, name, strbuf_str(&a), was->model, strbuf_str(&b), now->model);
    strbuf_fini(&a);
    strbuf_fini(&b);
    return e;
}

static struct tensor *config_steps_find_tensor(const struct steps *s, const char *name)
{
    return map_get(&s->tensors, name, strlen(name));
}

/* Notes a tensor as a model describes it, or compares it with the first description.
 * of  the model's configuration; model: the name that the ensemble uses */
static struct err *see(struct steps *s, const char *name, const char *model,
                       const Inference__ModelConfig *of, Inference__DataType type,
                       const int64_t *dims, size_t rank)
{
    struct tensor seen = {.model = model,
                          .type = type,
                          .dims = dims,
                          .rank = rank,
                          .batched = of->max_batch_size > 0};
    struct tensor *t = config_steps_find_tensor(s, name);
    if (t)
        return config_steps_compare(s, name, t, &seen);
    t = MEM_NEW(struct tensor);
    *t = seen;
    map_put(&s->tensors, name, strlen(name), t);
    return NULL;
}

static struct err *see_own(struct steps *s)
{
    const Inference__ModelConfig *p = s->p;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < p->n_input; i++) {
        const Inference__ModelInput *io = p->input[i];
        const Inference__ModelTensorReshape *r = io->reshape;
        e = see(s, io->name, p->name, p, io->data_type, r ? r->shape : io->dims,
                r ? r->n_shape : io->n_dims);
    }
    for (size_t i = 0; !e && i < p->n_output; i++) {
        const Inference__ModelOutput *io = p->output[i];
        const Inference__ModelTensorReshape *r = io->reshape;
        if (config_steps_find_tensor(s, io->name))
            continue;
        e = see(s, io->name, p->name, p, io->data_type, r ? r->shape : io->dims,
                r ? r->n_shape : io->n_dims);
    }
    return e;
}

static const char *tensor_for_input(const step_proto *step, const char *input)
{
    for (size_t i = 0; i < step->n_input_map; i++)
        if (strcmp(step->input_map[i]->key, input) == 0)
            return step->input_map[i]->value;
    return NULL;
}

static struct err *check_inputs(struct steps *s, const step_proto *step,
                                const Inference__ModelConfig *model)
{
    for (size_t i = 0; i < step->n_input_map; i++) {
        bool found = false;
        for (size_t k = 0; k < model->n_input; k++)
            found = found || strcmp(model->input[k]->name, step->input_map[i]->key) == 0;
        if (!found)
            return err_new(STATUS_INVALID_ARG,
                           "in ensemble %s, ensemble tensor %s is mapping to non-existing input %s "
                           "in model %s",
                           s->p->name, step->input_map[i]->value, step->input_map[i]->key,
                           step->model_name);
    }
    for (size_t k = 0; k < model->n_input; k++) {
        const Inference__ModelInput *io = model->input[k];
        const char *name = tensor_for_input(step, io->name);
        if (!name && io->optional)
            continue;
        if (!name)
            return err_new(STATUS_INVALID_ARG,
                           "in ensemble %s, input %s in model %s is not mapped to any ensemble "
                           "tensors",
                           s->p->name, io->name, step->model_name);
        struct err *e = see(s, name, step->model_name, model, io->data_type, io->dims, io->n_dims);
        if (e)
            return e;
    }
    return NULL;
}

static struct err *config_steps_check_outputs(struct steps *s, const step_proto *step,
                                              const Inference__ModelConfig *model)
{
    for (size_t i = 0; i < step->n_output_map; i++) {
        const Inference__ModelOutput *io = NULL;
        for (size_t k = 0; k < model->n_output && !io; k++)
            if (strcmp(model->output[k]->name, step->output_map[i]->key) == 0)
                io = model->output[k];
        if (!io)
            return err_new(STATUS_INVALID_ARG,
                           "in ensemble %s, ensemble tensor %s is mapped from non-existing output "
                           "%s in model %s",
                           s->p->name, step->output_map[i]->value, step->output_map[i]->key,
                           step->model_name);
        struct err *e = see(s, step->output_map[i]->value, step->model_name, model, io->data_type,
                            io->dims, io->n_dims);
        if (e)
            return e;
    }
    return NULL;
}

static struct err *config_steps_check_step(struct steps *s, const step_proto *step)
{
    const Inference__ModelConfig *model = s->find(s->owner, step->model_name);
    if (!model)
        return err_new(STATUS_INVALID_ARG,
                       "ensemble %s contains models that are not available or ambiguous: %s",
                       s->p->name, step->model_name);
    if (model->max_batch_size && model->max_batch_size < s->p->max_batch_size)
        return err_new(STATUS_INVALID_ARG,
                       "ensemble %s allows maximum batch size %d, but it contains model %s which "
                       "only allows maximum batch size to be %d",
                       s->p->name, s->p->max_batch_size, step->model_name, model->max_batch_size);
    struct err *e = check_inputs(s, step, model);
    return e ? e : config_steps_check_outputs(s, step, model);
}

const char config_steps_mixed[] = "receives inputs originated from different decoupled models";

static struct err *mixed(const struct steps *s, const char *model)
{
    return err_new(STATUS_INVALID_ARG, "in ensemble %s, step of model '%s' %s", s->p->name, model,
                   config_steps_mixed);
}

/* The label that all inputs of a step share. Returns false if an input has no label yet. */
static bool input_label(const struct steps *s, const step_proto *step, size_t *ret, bool *ret_mixed)
{
    *ret_mixed = false;
    for (size_t i = 0; i < step->n_input_map; i++) {
        const struct tensor *t = config_steps_find_tensor(s, step->input_map[i]->value);
        if (!t || !t->known)
            return false;
        *ret_mixed = *ret_mixed || (i && t->label != *ret);
        *ret = t->label;
    }
    return true;
}

static bool is_labelled(const struct steps *s, const step_proto *step)
{
    return config_steps_find_tensor(s, step->output_map[0]->value)->known;
}

/* Gives every tensor the label of the decoupled step that it depends on. */
static struct err *label(struct steps *s, size_t *ret_labels)
{
    const Inference__ModelEnsembling *en = s->p->ensemble_scheduling;
    size_t labels = 0;
    for (size_t i = 0; i < s->p->n_input; i++)
        config_steps_find_tensor(s, s->p->input[i]->name)->known = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < en->n_step; i++) {
            const step_proto *step = en->step[i];
            size_t at = 0;
            bool is_mixed;
            if (is_labelled(s, step) || !input_label(s, step, &at, &is_mixed))
                continue;
            if (is_mixed)
                return mixed(s, step->model_name);
            const Inference__ModelConfig *model = s->find(s->owner, step->model_name);
            if (model->model_transaction_policy && model->model_transaction_policy->decoupled)
                at = ++labels;
            for (size_t k = 0; k < step->n_output_map; k++) {
                struct tensor *t = config_steps_find_tensor(s, step->output_map[k]->value);
                t->known = true;
                t->label = at;
            }
            more = true;
        }
    }
    for (size_t i = 1; i < s->p->n_output; i++)
        if (config_steps_find_tensor(s, s->p->output[i]->name)->label !=
            config_steps_find_tensor(s, s->p->output[0]->name)->label)
            return mixed(s, s->p->name);
    *ret_labels = labels;
    return NULL;
}

struct err *config_steps_check(const Inference__ModelConfig *p, config_steps_find_fn *find,
                               void *owner, bool *ret_decoupled)
{
    struct steps s = {.p = p, .find = find, .owner = owner, .tensors = MAP_INIT};
    size_t labels = 0;
    struct err *e = see_own(&s);
    for (size_t i = 0; !e && i < p->ensemble_scheduling->n_step; i++)
        e = config_steps_check_step(&s, p->ensemble_scheduling->step[i]);
    if (!e)
        e = label(&s, &labels);
    if (!e)
        *ret_decoupled = labels > 0;
    size_t pos = 0;
    const char *name;
    void *value;
    while (map_next(&s.tensors, &pos, &name, &value))
        mem_free(value);
    map_fini(&s.tensors);
    return e;
}
