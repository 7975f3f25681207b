#include "repo/load/load.h"

#include "base/log.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_groups.h"
#include "model/config_guess.h"
#include "os/clock.h"
#include "plugin/backend.h"
#include "isolate/isolate.h"
#include "os/files/tree.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "repo/load/load_code.h"
#include "repo/load/load_labels.h"
#include "repo/load/load_strategy.h"
#include "serve/features.h"
#include "serve/version.h"
#include "repo/load/local.h"

struct err *load_read_config(const struct load_context *c, const char *model_dir,
                             struct Inference__ModelConfig **ret)
{
    char *text;
    size_t len;
    char *path;
    struct err *e = local_read_config(model_dir, c->config_name, &text, &len, &path);
    if (e)
        return e;
    if (text)
        e = config_parse_text(text, len, path, ret);
    else if (c->auto_complete)
        *ret = config_new_proto();
    else
        e = err_new(STATUS_NOT_FOUND,
                    "'%s' is missing, and completing configurations is switched off", path);
    mem_free(text);
    mem_free(path);
    return e;
}

/* Fills in what the author left out: the backend, guessed from the directory (as in the
 * reference also without auto-completion), then every default. */
static struct err *load_complete(struct Inference__ModelConfig *proto, const char *name,
                                 const char *model_dir, int64_t number)
{
    if (config_guess_wanted(proto)) {
        struct local_names files = {0};
        struct err *e = number ? local_files(model_dir, number, &files) : NULL;
        if (e)
            return e;
        e = config_guess_backend(proto, name, (const char *const *)files.names, files.count);
        local_names_fini(&files);
        if (e)
            return e;
    }
    config_fill_defaults(proto, name);
    return NULL;
}

bool load_needs_files(const struct Inference__ModelConfig *written)
{
    return config_guess_wanted(written);
}

struct err *load_check_config(const struct load_context *c, const char *name, const char *model_dir,
                              int64_t number, const struct Inference__ModelConfig *written)
{
    struct Inference__ModelConfig *proto = config_copy_proto(written);
    struct err *e = load_complete(proto, name, model_dir, number);
    if (!e)
        e = config_check_message(proto, name, !c->auto_complete);
    config_free_proto(proto);
    return e;
}

void load_machine(const struct Inference__ModelConfig *proto, const struct attribute *said,
                  struct config_groups_machine *ret)
{
    *ret = (struct config_groups_machine){0};
    if (said) {
        ret->wishes = said->wishes;
        ret->wish_count = said->wish_count;
    }
    if (!config_groups_ask(proto, ret->wishes, ret->wish_count))
        return;
    const struct gpu_list *gpus = gpu_look();
    gpu_tell_failure();
    ret->gpus = gpus->usable;
    ret->gpu_count = gpus->usable_count;
    ret->min_compute_capability = gpus->least;
}

/* Completes and checks once more what the backend left, and publishes it with the version. */
static struct err *finish_config(struct plugin_model *m, const char *name,
                                 struct model_config **ret)
{
    config_fill_defaults(m->proto, name);
    struct config_groups_machine machine;
    load_machine(m->proto, &m->backend->attributes, &machine);
    config_groups_fill(m->proto, &machine);
    struct err *e = config_groups_check(m->proto, &machine);
    if (!e)
        e = config_check_model(m->proto, name, CONFIG_CHECK_FULL);
    if (!e)
        e = config_compile(&m->proto, ret);
    if (!e)
        model_publish_config(m, *ret);
    return e;
}

/* The files of a load request belong to the server alone. Makes them readable for the user of
 * the model's process. */
static struct err *share_directory(const struct load_context *c,
                                   const struct Inference__ModelConfig *proto,
                                   const char *model_dir)
{
    bool named = false;
    uint32_t group;
    struct err *e = c->is_ours ? isolate_group(proto, &named, &group) : NULL;
    return e || !named ? e : tree_share(model_dir, group);
}

/* Makes the backend's model, and the configuration after the backend completed it. No model is
 * made if the backend should not be waited for. */
static struct err *load_initialize(const struct load_context *c, const char *name,
                                   const char *model_dir, int64_t number, bool wait,
                                   struct Inference__ModelConfig **proto,
                                   struct plugin_model **ret_model,
                                   struct model_config **ret_config)
{
    struct plugin_backend *backend = NULL;
    struct err *e = share_directory(c, *proto, model_dir);
    if (!e)
        e = isolate_backend_new(c->backends, *proto, name, model_dir, number, &backend);
    if (!e && !backend)
        e = backend_get(c->backends,
                        &(struct backend_wanted){.name = (*proto)->backend,
                                                 .runtime = (*proto)->runtime,
                                                 .model = name,
                                                 .model_dir = model_dir,
                                                 .version = number},
                        wait, &backend);
    if (e || !backend)
        return e;
    struct config_groups_machine machine;
    load_machine(*proto, &backend->attributes, &machine);
    config_groups_fill(*proto, &machine);
    struct plugin_model *m =
        model_new(backend, name, number, model_dir, *proto, c->auto_complete, c->server);
    *proto = NULL;
    struct model_config *config = NULL;
    e = model_initialize(m);
    if (!e)
        e = finish_config(m, name, &config);
    if (!e)
        e = load_strategy(m, config->proto, c->backends->directory);
    if (e) {
        model_free(m);
        if (config)
            config_unref(config);
        return e;
    }
    *ret_model = m;
    *ret_config = config;
    return NULL;
}

/* Makes the configuration of a model that has neither a backend nor instances. */
static struct err *compile_alone(const char *name, struct Inference__ModelConfig **proto,
                                 struct model_config **ret)
{
    struct err *e = config_check_model(*proto, name, CONFIG_CHECK_FULL);
    return e ? e : config_compile(proto, ret);
}

static struct err *load_all(const struct load_context *c, const char *name, const char *model_dir,
                            int64_t number, const struct Inference__ModelConfig *written, bool wait,
                            struct serve_version **ret)
{
    time_ns start = clock_now_ns();
    struct Inference__ModelConfig *proto = config_copy_proto(written);
    struct plugin_model *model = NULL;
    struct model_config *config = NULL;
    struct serve_version *v = NULL;
    char **seen;
    struct err *e = features_look(c->features, model_dir, &seen);
    if (!e)
        e = load_complete(proto, name, model_dir, number);
    if (!e)
        e = config_check_model(proto, name,
                               c->auto_complete ? CONFIG_CHECK_PARTIAL : CONFIG_CHECK_FULL);
    if (!e)
        e = load_code_check(proto, name, model_dir, number, c->from);
    if (!e)
        e = features_stand_alone(c->features, proto)
                ? compile_alone(name, &proto, &config)
                : load_initialize(c, name, model_dir, number, wait, &proto, &model, &config);
    config_free_proto(proto);
    if (!e && !config) {
        features_forget(c->features, seen);
        *ret = NULL;
        return NULL;
    }
    if (!e)
        e = version_new(name, number, config, model, c->allow_inline, c->house, c->features, &v);
    if (!e) {
        v->policies = c->policies;
        v->table = c->table;
        features_wrap(c->features, v, seen);
    }
    features_forget(c->features, seen);
    if (!e)
        e = load_labels(v->config, model_dir, &v->labels);
    if (!e)
        e = version_start(v);
    if (e) {
        version_free(v);
        return e;
    }
    v->load_ns = clock_now_ns() - start;
    *ret = v;
    return NULL;
}

struct err *load_version(const struct load_context *c, const char *name, const char *model_dir,
                         int64_t number, const struct Inference__ModelConfig *written, bool wait,
                         struct serve_version **ret)
{
    char *title = model_title(name, number);
    struct log_work was = log_work_set((struct log_work){"loading", title});
    struct err *e = load_all(c, name, model_dir, number, written, wait, ret);
    log_work_set(was);
    mem_free(title);
    return e;
}
