#include "model/config_fill.h"

#include "base/mem.h"
#include "codec/pb_field.h"
#include "model/config_platform.h"
#include "proto/model_config.pb-c.h"

#include <stdbool.h>
#include <string.h>

static void fill_string(char **member, const char *value)
{
    if (!**member && *value)
        pb_field_set_string(member, value);
}

static void fill_backend(Inference__ModelConfig *p)
{
    bool ensemble =
        p->scheduling_choice_case == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
    if (ensemble && !*p->platform && !*p->backend)
        pb_field_set_string(&p->platform, CONFIG_PLATFORM_ENSEMBLE);
    const struct config_platform *row = config_platform_find(p->platform);
    if (!row && *p->backend && !*p->platform) {
        row = config_platform_of_backend(p->backend);
        if (row && strcmp(row->backend, "tensorflow") == 0)
            row = NULL; /* it has two platforms; the definition decides, see config_guess_backend */
    }
    if (!row || (*p->backend && strcmp(p->backend, row->backend) != 0))
        return;
    fill_string(&p->platform, row->name);
    fill_string(&p->backend, row->backend);
    /* A PyTorch model whose runtime is Python is not a TorchScript file. */
    if (strcmp(row->backend, "pytorch") != 0 || strcmp(p->runtime, "model.py") != 0)
        fill_string(&p->default_model_filename, row->filename);
}

static void fill_version_policy(Inference__ModelConfig *p)
{
    if (!p->version_policy) {
        p->version_policy = mem_alloc(sizeof(*p->version_policy));
        inference__model_version_policy__init(p->version_policy);
    }
    Inference__ModelVersionPolicy *policy = p->version_policy;
    if (policy->policy_choice_case == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE__NOT_SET) {
        policy->policy_choice_case = INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST;
        policy->latest = mem_alloc(sizeof(*policy->latest));
        inference__model_version_policy__latest__init(policy->latest);
    }
    if (policy->policy_choice_case == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST &&
        policy->latest->num_versions == 0)
        policy->latest->num_versions = 1;
}

static void fill_preferred(size_t *n, int32_t **sizes, int32_t max_batch_size)
{
    if (*n || max_batch_size <= 0)
        return;
    *sizes = mem_alloc(sizeof(**sizes));
    (*sizes)[0] = max_batch_size;
    *n = 1;
}

static void fill_scheduling(Inference__ModelConfig *p)
{
    if (p->scheduling_choice_case == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING) {
        Inference__ModelDynamicBatching *d = p->dynamic_batching;
        fill_preferred(&d->n_preferred_batch_size, &d->preferred_batch_size, p->max_batch_size);
    }
    if (p->scheduling_choice_case != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
        return;
    Inference__ModelSequenceBatching *s = p->sequence_batching;
    if (s->max_sequence_idle_microseconds == 0)
        s->max_sequence_idle_microseconds = CONFIG_FILL_SEQUENCE_IDLE_US;
    if (s->strategy_choice_case == INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST)
        fill_preferred(&s->oldest->n_preferred_batch_size, &s->oldest->preferred_batch_size,
                       p->max_batch_size);
}

static void fill_pinned(Inference__ModelOptimizationPolicy__PinnedMemoryBuffer **buffer)
{
    if (*buffer)
        return;
    *buffer = mem_alloc(sizeof(**buffer));
    inference__model_optimization_policy__pinned_memory_buffer__init(*buffer);
    (*buffer)->enable = 1;
}

static void fill_optimization(Inference__ModelConfig *p)
{
    if (p->scheduling_choice_case == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        return;
    if (!p->optimization) {
        p->optimization = mem_alloc(sizeof(*p->optimization));
        inference__model_optimization_policy__init(p->optimization);
    }
    fill_pinned(&p->optimization->input_pinned_memory);
    fill_pinned(&p->optimization->output_pinned_memory);
}

void config_fill_defaults(Inference__ModelConfig *proto, const char *model_name)
{
    fill_string(&proto->name, model_name);
    fill_backend(proto);
    fill_version_policy(proto);
    fill_scheduling(proto);
    fill_optimization(proto);
}
