#include "model/config_check.h"

#include "model/config_check_priv.h"
#include "model/config_platform.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

struct err *config_check_file(const char *model, const char *what, const char *file)
{
    bool leaves = *file == '/';
    for (const char *part = file; part && !leaves; part = strchr(part, '/')) {
        part += *part == '/' ? 1 : 0;
        leaves = part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0');
    }
    if (!leaves)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "%s '%s' must stay inside the model's directory for %s",
                   what, file, model);
}

static struct err *check_backend_name(const Inference__ModelConfig *p)
{
    if (strchr(p->backend, '/') || strcmp(p->backend, ".") == 0 || strcmp(p->backend, "..") == 0)
        return err_new(STATUS_INVALID_ARG, "backend '%s' must be a name, not a path for %s",
                       p->backend, p->name);
    return NULL;
}

static struct err *check_platform(const Inference__ModelConfig *p)
{
    bool ensemble = strcmp(p->platform, CONFIG_PLATFORM_ENSEMBLE) == 0;
    if (!*p->platform && !*p->backend)
        return err_new(STATUS_INVALID_ARG, "must specify 'platform' or 'backend' for '%s'",
                       p->name);
    if (!*p->backend && !ensemble)
        return err_new(STATUS_INVALID_ARG, "unexpected platform type '%s' for %s", p->platform,
                       p->name);
    if (*p->backend && ensemble)
        return err_new(STATUS_INVALID_ARG,
                       "Ensemble model '%s' must have platform type '%s' and empty backend type",
                       p->name, p->platform);
    /* A known backend accepts only its own platforms; an unknown backend accepts any platform. */
    const struct config_platform *of_backend = config_platform_of_backend(p->backend);
    const struct config_platform *of_platform = config_platform_find(p->platform);
    if (of_backend && *of_backend->name &&
        (!of_platform || strcmp(of_platform->backend, p->backend) != 0))
        return err_new(STATUS_INVALID_ARG, "unexpected 'platform' and 'backend' pair, got:%s, %s",
                       p->platform, p->backend);
    return NULL;
}

static struct err *check_files(const Inference__ModelConfig *p)
{
    struct err *e = config_check_file(p->name, "default_model_filename", p->default_model_filename);
    for (size_t i = 0; !e && i < p->n_cc_model_filenames; i++)
        e = config_check_file(p->name, "cc_model_filenames", p->cc_model_filenames[i]->value);
    for (size_t i = 0; !e && i < p->n_output; i++)
        e = config_check_file(p->name, "label_filename", p->output[i]->label_filename);
    return e ? e : config_check_sched_state_files(p);
}

static struct err *config_check_versions(const Inference__ModelConfig *p)
{
    const Inference__ModelVersionPolicy *v = p->version_policy;
    if (v->policy_choice_case != INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC)
        return NULL;
    for (size_t i = 0; i < v->specific->n_versions; i++)
        if (v->specific->versions[i] < 1)
            return err_new(STATUS_INVALID_ARG,
                           "version policy 'specific' must list versions >= 1, got %lld for %s",
                           (long long)v->specific->versions[i], p->name);
    return NULL;
}

static struct err *check_cache(const Inference__ModelConfig *p)
{
    if (!p->response_cache || !p->response_cache->enable)
        return NULL;
    if (p->scheduling_choice_case == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
        return err_new(STATUS_INVALID_ARG,
                       "Response Cache does not currently support model %s with sequence batching "
                       "scheduler. Please disable the "
                       "response cache.",
                       p->name);
    if (p->model_transaction_policy && p->model_transaction_policy->decoupled)
        return err_new(STATUS_INVALID_ARG,
                       "Response Cache does not currently support model %s with 'decoupled' "
                       "transaction policy. Please disable "
                       "the response cache.",
                       p->name);
    return NULL;
}

static struct err *check_metrics(const Inference__ModelConfig *p)
{
    for (size_t i = 0; p->model_metrics && i < p->model_metrics->n_metric_control; i++) {
        const Inference__ModelMetrics__MetricControl *c = p->model_metrics->metric_control[i];
        const char *wrong = NULL;
        if (!c->metric_identifier)
            wrong = "metric control must specify 'metric_identifier'";
        else if (!*c->metric_identifier->family)
            wrong = "metric identifier must specify non-empty 'family'";
        else if (c->metric_options_case !=
                 INFERENCE__MODEL_METRICS__METRIC_CONTROL__METRIC_OPTIONS_HISTOGRAM_OPTIONS)
            wrong = "metric control must specify 'histogram_options'";
        else if (c->histogram_options->n_buckets == 0)
            wrong = "histogram options must specify non-empty 'buckets'";
        if (wrong)
            return err_new(STATUS_INVALID_ARG, "%s", wrong);
    }
    return NULL;
}

static struct err *config_check_whole(const Inference__ModelConfig *p)
{
    if (!*p->name)
        return err_new(STATUS_INVALID_ARG, "model configuration must specify 'name'");
    struct err *e = check_platform(p);
    if (!e && p->max_batch_size < 0)
        e = err_new(STATUS_INVALID_ARG, "'max_batch_size' must be non-negative value for %s",
                    p->name);
    if (!e && !p->version_policy)
        e = err_new(STATUS_INVALID_ARG, "must specify 'version policy' for %s", p->name);
    if (!e)
        e = config_check_sched_rules(p);
    if (!e &&
        p->scheduling_choice_case == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        e = config_check_ensemble_rules(p);
    else if (!e && strcmp(p->platform, CONFIG_PLATFORM_ENSEMBLE) == 0)
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble scheduling must be set for ensemble %s whose platform is %s", p->name,
                    CONFIG_PLATFORM_ENSEMBLE);
    if (!e)
        e = check_cache(p);
    if (!e)
        e = check_metrics(p);
    return e;
}

struct err *config_check_message(const Inference__ModelConfig *proto, const char *model_name,
                                 bool complete)
{
    struct err *e = config_check_whole(proto);
    if (!e && model_name && strcmp(model_name, proto->name) != 0)
        e = err_new(
            STATUS_INVALID_ARG,
            "unexpected directory name '%s' for model '%s', directory name must equal model name",
            model_name, proto->name);
    if (!e && complete)
        e = config_check_io_rules(proto);
    return e;
}

struct err *config_check_model(const Inference__ModelConfig *proto, const char *model_name,
                               enum config_check_stage stage)
{
    struct err *e = config_check_message(proto, model_name, stage == CONFIG_CHECK_FULL);
    if (!e)
        e = check_backend_name(proto);
    if (!e)
        e = config_check_versions(proto);
    if (!e)
        e = check_files(proto);
    return e ? e : config_check_warmup_rules(proto, stage == CONFIG_CHECK_FULL);
}
