/* Rules for the dynamic and the sequence batcher. */
#include "base/map.h"
#include "model/config_check_priv.h"
#include "proto/model_config.pb-c.h"

#include <inttypes.h>
#include <string.h>

static struct err *check_preferred(const Inference__ModelConfig *p, const char *what,
                                   const int32_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] <= 0)
            return err_new(STATUS_INVALID_ARG, "%s must be positive for %s", what, p->name);
        if (sizes[i] > p->max_batch_size)
            return err_new(STATUS_INVALID_ARG, "%s must be <= max batch size for %s", what,
                           p->name);
    }
    return NULL;
}

static struct err *check_priorities(const Inference__ModelConfig *p,
                                    const Inference__ModelDynamicBatching *d)
{
    if (d->priority_levels == 0)
        return NULL;
    if (d->default_priority_level == 0 || d->default_priority_level > d->priority_levels)
        return err_new(STATUS_INVALID_ARG,
                       "default priority level must be in range [1, %" PRIu64 "] for %s",
                       d->priority_levels, p->name);
    for (size_t i = 0; i < d->n_priority_queue_policy; i++) {
        uint64_t level = d->priority_queue_policy[i]->key;
        if (level == 0 || level > d->priority_levels)
            return err_new(STATUS_INVALID_ARG,
                           "priority queue policy must have priority level in range [1, %" PRIu64
                           "] for %s",
                           d->priority_levels, p->name);
    }
    return NULL;
}

static struct err *check_timeout_action(const Inference__ModelConfig *p,
                                        const Inference__ModelQueuePolicy *q, bool ordered)
{
    if (!q)
        return NULL;
    int action = (int)q->timeout_action;
    if (action != (int)INFERENCE__MODEL_QUEUE_POLICY__TIMEOUT_ACTION__REJECT &&
        action != (int)INFERENCE__MODEL_QUEUE_POLICY__TIMEOUT_ACTION__DELAY)
        return err_new(STATUS_INVALID_ARG,
                       "queue policy must have REJECT or DELAY as timeout action, got %d for %s",
                       action, p->name);
    if (ordered && q->default_timeout_microseconds &&
        action == (int)INFERENCE__MODEL_QUEUE_POLICY__TIMEOUT_ACTION__DELAY)
        return err_new(STATUS_INVALID_ARG,
                       "Queue policy can not have DELAY as timeout action when 'preserve_ordering' "
                       "is true for %s",
                       p->name);
    return NULL;
}

static struct err *check_dynamic(const Inference__ModelConfig *p,
                                 const Inference__ModelDynamicBatching *d)
{
    struct err *e = check_preferred(p, "dynamic batching preferred size", d->preferred_batch_size,
                                    d->n_preferred_batch_size);
    if (!e)
        e = check_priorities(p, d);
    if (!e && d->preserve_ordering && d->priority_levels > 1)
        e = err_new(STATUS_INVALID_ARG,
                    "Only one priority level is allowed when 'preserve_ordering' is true for %s",
                    p->name);
    if (!e)
        e = check_timeout_action(p, d->default_queue_policy, d->preserve_ordering);
    for (size_t i = 0; !e && i < d->n_priority_queue_policy; i++)
        e = check_timeout_action(p, d->priority_queue_policy[i]->value, d->preserve_ordering);
    return e;
}

static const char *control_name(const Inference__ModelSequenceBatching__Control *c)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(
        &inference__model_sequence_batching__control__kind__descriptor, (int)c->kind);
    return v ? v->name : NULL;
}

/* check_values - START, READY and END: one pair of values, of one type. */
static struct err *check_values(const Inference__ModelConfig *p,
                                const Inference__ModelSequenceBatching__Control *c)
{
    size_t kinds = (c->n_int32_false_true ? 1u : 0u) + (c->n_fp32_false_true ? 1u : 0u) +
                   (c->n_bool_false_true ? 1u : 0u);
    const char *name = control_name(c);
    if (kinds == 0)
        return err_new(STATUS_INVALID_ARG,
                       "sequence batching must specify either 'int32_false_true', "
                       "'fp32_false_true' or 'bool_false_true' for %s "
                       "for %s",
                       name, p->name);
    if (kinds > 1)
        return err_new(STATUS_INVALID_ARG,
                       "sequence batching specifies more than one from 'int32_false_true', "
                       "'fp32_false_true' and "
                       "'bool_false_true' for %s for %s",
                       name, p->name);
    const char *field = c->n_int32_false_true  ? "int32_false_true"
                        : c->n_fp32_false_true ? "fp32_false_true"
                                               : "bool_false_true";
    if (c->n_int32_false_true + c->n_fp32_false_true + c->n_bool_false_true != 2)
        return err_new(STATUS_INVALID_ARG,
                       "sequence batching control '%s' must have exactly 2 entries for %s for %s",
                       field, name, p->name);
    return NULL;
}

static struct err *check_corrid(const Inference__ModelConfig *p,
                                const Inference__ModelSequenceBatching__Control *c)
{
    const char *name = control_name(c);
    if (c->n_int32_false_true || c->n_fp32_false_true || c->n_bool_false_true)
        return err_new(STATUS_INVALID_ARG,
                       "sequence batching must not specify either 'int32_false_true', "
                       "'fp32_false_true' or 'bool_false_true' for "
                       "%s for %s",
                       name, p->name);
    switch ((int)c->data_type) {
    case INFERENCE__DATA_TYPE__TYPE_UINT64:
    case INFERENCE__DATA_TYPE__TYPE_INT64:
    case INFERENCE__DATA_TYPE__TYPE_UINT32:
    case INFERENCE__DATA_TYPE__TYPE_INT32:
    case INFERENCE__DATA_TYPE__TYPE_STRING:
        return NULL;
    default:
        return err_new(STATUS_INVALID_ARG,
                       "unexpected data type for control %s for %s. Allowed data types are "
                       "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, "
                       "TYPE_INT32 and TYPE_STRING",
                       name, p->name);
    }
}

static struct err *check_sequence_control(const Inference__ModelConfig *p,
                                          const Inference__ModelSequenceBatching__Control *c,
                                          unsigned *seen_kinds)
{
    const char *name = control_name(c);
    if (!name)
        return err_new(STATUS_INVALID_ARG,
                       "sequence batching has a control of unknown kind %d for %s", (int)c->kind,
                       p->name);
    unsigned bit = 1u << (int)c->kind;
    if (*seen_kinds & bit)
        return err_new(STATUS_INVALID_ARG, "sequence batching specifies multiple %s tensors for %s",
                       name, p->name);
    *seen_kinds |= bit;
    if (c->kind == INFERENCE__MODEL_SEQUENCE_BATCHING__CONTROL__KIND__CONTROL_SEQUENCE_CORRID)
        return check_corrid(p, c);
    return check_values(p, c);
}

static struct err *check_controls(const Inference__ModelConfig *p,
                                  const Inference__ModelSequenceBatching *s)
{
    struct map names = MAP_INIT;
    unsigned seen_kinds = 0;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < s->n_control_input; i++) {
        const Inference__ModelSequenceBatching__ControlInput *in = s->control_input[i];
        if (!*in->name)
            e = err_new(STATUS_INVALID_ARG,
                        "sequence batching control tensor must have a name for %s", p->name);
        else if (map_put(&names, in->name, strlen(in->name), &names))
            e = err_new(STATUS_INVALID_ARG,
                        "sequence batching control tensor '%s' is specified for multiple control "
                        "kinds for %s",
                        in->name, p->name);
        for (size_t k = 0; !e && k < in->n_control; k++)
            e = check_sequence_control(p, in->control[k], &seen_kinds);
    }
    map_fini(&names);
    return e;
}

struct err *config_check_sched_state_files(const Inference__ModelConfig *p)
{
    if (p->scheduling_choice_case != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
        return NULL;
    const Inference__ModelSequenceBatching *s = p->sequence_batching;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < s->n_state; i++)
        for (size_t k = 0; !e && k < s->state[i]->n_initial_state; k++) {
            const Inference__ModelSequenceBatching__InitialState *init =
                s->state[i]->initial_state[k];
            if (init->state_data_case ==
                INFERENCE__MODEL_SEQUENCE_BATCHING__INITIAL_STATE__STATE_DATA_DATA_FILE)
                e = config_check_file(p->name, "initial state data_file", init->data_file);
        }
    return e;
}

static struct err *check_sequence(const Inference__ModelConfig *p,
                                  const Inference__ModelSequenceBatching *s)
{
    struct err *e = check_controls(p, s);
    if (!e &&
        s->strategy_choice_case == INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST) {
        const Inference__ModelSequenceBatching__StrategyOldest *o = s->oldest;
        e = check_preferred(p, "sequence batching preferred batch size", o->preferred_batch_size,
                            o->n_preferred_batch_size);
        if (!e && o->max_candidate_sequences < 0)
            e = err_new(STATUS_INVALID_ARG,
                        "sequence batching max candidate sequences must be non-negative for %s",
                        p->name);
    }
    if (!e &&
        s->strategy_choice_case == INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_DIRECT &&
        !(s->direct->minimum_slot_utilization >= 0.0f &&
          s->direct->minimum_slot_utilization <= 1.0f))
        e = err_new(STATUS_INVALID_ARG,
                    "sequence batching minimum slot utilization must be in range (0.0, 1.0] for %s",
                    p->name);
    return e;
}

struct err *config_check_sched_rules(const Inference__ModelConfig *p)
{
    switch ((int)p->scheduling_choice_case) {
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING:
        return check_dynamic(p, p->dynamic_batching);
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING:
        return check_sequence(p, p->sequence_batching);
    default:
        return NULL;
    }
}
