#include "batching/batcher_setup.h"

#include "base/debug_env.h"
#include "base/mem.h"
#include "model/config.h"
#include "plugin/batch_strategy.h"
#include "proto/model_config.pb-c.h"
#include "batching/batcher.h"

static struct batcher_policy batcher_setup_policy(const Inference__ModelQueuePolicy *p)
{
    if (!p)
        return (struct batcher_policy){0};
    return (struct batcher_policy){
        .action = p->timeout_action == INFERENCE__MODEL_QUEUE_POLICY__TIMEOUT_ACTION__DELAY
                      ? BATCHER_TIMEOUT_DELAY
                      : BATCHER_TIMEOUT_REJECT,
        .allow_timeout_override = p->allow_timeout_override,
        .default_timeout_us = p->default_timeout_microseconds,
        .max_queue_size = p->max_queue_size,
    };
}

static struct err *new_dynamic(const struct model_config *config,
                               const Inference__ModelDynamicBatching *d, struct batcher_config *c,
                               struct batcher **ret)
{
    size_t levels = d->n_priority_queue_policy;
    struct batcher_level_policy *policies = mem_alloc(levels * sizeof(*policies));
    for (size_t i = 0; i < levels; i++)
        policies[i] = (struct batcher_level_policy){
            .level = d->priority_queue_policy[i]->key,
            .policy = batcher_setup_policy(d->priority_queue_policy[i]->value)};
    c->dynamic = true;
    c->max_batch_size = (uint32_t)config->max_batch_size;
    c->preferred = d->preferred_batch_size;
    c->preferred_count = d->n_preferred_batch_size;
    c->delay_us = d->max_queue_delay_microseconds;
    c->priority_levels = d->priority_levels;
    c->default_level = d->default_priority_level;
    c->default_policy = batcher_setup_policy(d->default_queue_policy);
    c->level_policies = policies;
    c->level_policy_count = levels;
    struct err *e = batcher_new(c, ret);
    mem_free(policies);
    return e;
}

struct err *batcher_setup_new(const struct model_config *config, struct batch_strategy *strategy,
                              struct batcher **ret)
{
    struct batcher_config c = {0};
    if (strategy)
        c.strategy = (struct batcher_strategy){.arg = strategy,
                                               .begin = batch_strategy_begin,
                                               .include = batch_strategy_include,
                                               .end = batch_strategy_end};
    const char **shape_tensors = mem_alloc(config->input_count * sizeof(*shape_tensors));
    for (uint32_t i = 0; i < config->input_count; i++)
        if (config->inputs[i].shape_tensor)
            shape_tensors[c.shape_tensor_count++] = config->inputs[i].name;
    c.shape_tensors = shape_tensors;
    const Inference__ModelConfig *proto = config->proto;
    struct err *e;
    if (config->scheduler == CONFIG_SCHEDULER_DYNAMIC)
        c.hold_until = debug_env_number("TRITONSERVER_DELAY_SCHEDULER");
    if (config->scheduler == CONFIG_SCHEDULER_DYNAMIC && config->max_batch_size > 0)
        e = new_dynamic(config, proto->dynamic_batching, &c, ret);
    else
        e = batcher_new(&c, ret);
    mem_free(shape_tensors);
    return e;
}
