/* Rules for warm-up samples. */
#include "base/map.h"
#include "model/config_check_priv.h"
#include "model/datatype.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

/* The most rows of a sample, and the most iterations. */
#define REPEAT_MAX 65536u

typedef Inference__ModelWarmup__InputsEntry entry_proto;

static struct err *check_entry(const Inference__ModelConfig *p, const Inference__ModelWarmup *w,
                               const entry_proto *entry)
{
    const Inference__ModelWarmup__Input *in = entry->value;
    if ((int)in->data_type <= DATATYPE_INVALID || (int)in->data_type >= DATATYPE_COUNT)
        return err_new(STATUS_INVALID_ARG,
                       "warmup sample '%s' must specify 'data_type' of input '%s' for %s", w->name,
                       entry->key, p->name);
    for (size_t i = 0; i < in->n_dims; i++)
        if (in->dims[i] < 0)
            return err_new(STATUS_INVALID_ARG,
                           "warmup setting expects all variable-size dimensions are specified for "
                           "input '%s' of sample '%s' for %s",
                           entry->key, w->name, p->name);
    if (in->input_data_type_case == INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE__NOT_SET)
        return err_new(STATUS_INVALID_ARG,
                       "warmup setting expects input '%s' to have input_data_type set for %s",
                       entry->key, p->name);
    if (in->input_data_type_case == INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_INPUT_DATA_FILE)
        return config_check_file(p->name, "input_data_file", in->input_data_file);
    return NULL;
}

static const void *sample_has(const struct map *given, const char *name)
{
    return map_get(given, name, strlen(name));
}

/* check_sample_complete - the sample must have an entry for each required input and
 * each control tensor. */
static struct err *check_sample_complete(const Inference__ModelConfig *p,
                                         const Inference__ModelWarmup *w, const struct map *given)
{
    const char *missing = NULL;
    for (size_t i = 0; !missing && i < p->n_input; i++)
        if (!p->input[i]->optional && !sample_has(given, p->input[i]->name))
            missing = p->input[i]->name;
    if (p->scheduling_choice_case == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
        for (size_t i = 0; !missing && i < p->sequence_batching->n_control_input; i++)
            if (!sample_has(given, p->sequence_batching->control_input[i]->name))
                missing = p->sequence_batching->control_input[i]->name;
    if (missing)
        return err_new(STATUS_INVALID_ARG, "warmup sample '%s' must specify input '%s' for %s",
                       w->name, missing, p->name);
    return NULL;
}

static struct err *check_sample(const Inference__ModelConfig *p, const Inference__ModelWarmup *w,
                                bool full)
{
    if (w->batch_size < 1)
        return err_new(STATUS_INVALID_ARG, "warmup sample '%s' must have batch_size >= 1 for %s",
                       w->name, p->name);
    if (p->max_batch_size == 0 && full && w->batch_size != 1)
        return err_new(STATUS_INVALID_ARG,
                       "warmup sample '%s' must have batch_size 1, as the model does not support "
                       "batching, for %s",
                       w->name, p->name);
    if (full && p->max_batch_size > 0 && w->batch_size > (uint32_t)p->max_batch_size)
        return err_new(STATUS_INVALID_ARG,
                       "warmup sample '%s' must have batch_size <= max batch size for %s", w->name,
                       p->name);
    if (w->batch_size > REPEAT_MAX || w->count > REPEAT_MAX)
        return err_new(STATUS_INVALID_ARG,
                       "warmup sample '%s' must have batch_size and count <= %u for %s", w->name,
                       REPEAT_MAX, p->name);
    struct map given = MAP_INIT;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < w->n_inputs; i++) {
        map_put(&given, w->inputs[i]->key, strlen(w->inputs[i]->key), w->inputs[i]);
        e = check_entry(p, w, w->inputs[i]);
    }
    if (!e && full)
        e = check_sample_complete(p, w, &given);
    map_fini(&given);
    return e;
}

struct err *config_check_warmup_rules(const Inference__ModelConfig *p, bool full)
{
    struct err *e = NULL;
    for (size_t i = 0; !e && i < p->n_model_warmup; i++)
        e = check_sample(p, p->model_warmup[i], full);
    return e;
}
