/* Checks of one model's files, see check_priv.h. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_groups.h"
#include "model/config_guess.h"
#include "model/config_platform.h"
#include "model/version_policy.h"
#include "os/files/file.h"
#include "os/files/tree.h"
#include "plugin/backend.h"
#include "plugin/repo_agent.h"
#include "proto/model_config.pb-c.h"
#include "repo/check/check_priv.h"
#include "repo/load/load_code.h"
#include "repo/load/load_labels.h"
#include "repo/load/load_strategy.h"
#include "serve/features.h"
#include "serve/version.h"
#include "serve/warmup.h"
#include "repo/load/load.h"
#include "repo/load/local.h"

#include <inttypes.h>
#include <string.h>

/* Data shared by the checks of one model. */
struct subject {
    struct check *c;
    const char *model;
    const char *dir;
    const char *config; /* path of its configuration, for messages */
    const Inference__ModelConfig *written;
};

static bool all_digits(const char *name)
{
    return *name && name[strspn(name, "0123456789")] == '\0';
}

/* The numbers of the versions that would be served; the caller frees them. */
static int64_t *check_files_find_versions(const struct subject *s, size_t *ret_count)
{
    *ret_count = 0;
    struct local_names dirs;
    struct err *e = local_directories(s->dir, &dirs);
    if (e) {
        check_add_error(s->c, s->model, s->dir, e, "make the directory readable");
        return NULL;
    }
    int64_t *numbers = mem_alloc((dirs.count + 1) * sizeof(*numbers));
    size_t found = 0;
    for (size_t i = 0; i < dirs.count; i++) {
        if (version_policy_parse_dir(dirs.names[i], &numbers[found])) {
            found++;
        } else if (all_digits(dirs.names[i])) {
            char *path = file_join(s->dir, dirs.names[i]);
            check_add(s->c, s->model, path,
                      "this is no version: a number does not begin with 0, and is below 2^63",
                      "rename the directory");
            mem_free(path);
        }
    }
    local_names_fini(&dirs);
    int64_t missing;
    version_policy_pick(s->written->version_policy, numbers, found, ret_count, &missing);
    if (!found) {
        check_add(s->c, s->model, s->dir, "it has no version",
                  "make a directory named by a number, e.g. 1, with the model in it");
    } else if (missing != -1) {
        struct strbuf what = STRBUF_INIT;
        strbuf_printf(&what, "version_policy asks for version %" PRId64 ", which is not there",
                      missing);
        check_add(s->c, s->model, s->config, strbuf_str(&what),
                  "add the version's directory, or change version_policy");
        strbuf_fini(&what);
    }
    return numbers;
}

static void need_file(const struct subject *s, const char *dir, const char *name, const char *what,
                      const char *mend)
{
    char *path = file_join(dir, name);
    if (!tree_name_ok(name))
        check_add(s->c, s->model, s->config, "a file name leaves the model's directory", mend);
    else if (!file_exists(path))
        check_add(s->c, s->model, path, what, mend);
    mem_free(path);
}

/* Checks the model definition, for backends whose file names are known. */
static void check_definition(const struct subject *s, const Inference__ModelConfig *p,
                             const char *version_dir)
{
    if (!*p->default_model_filename || !config_platform_of_backend(p->backend))
        return;
    char *path = file_join(version_dir, p->default_model_filename);
    bool there = file_exists(path);
    mem_free(path);
    if (there)
        return;
    for (size_t i = 0; i < p->n_cc_model_filenames; i++)
        need_file(s, version_dir, p->cc_model_filenames[i]->value,
                  "cc_model_filenames names it, and it is not there",
                  "put the model there, or change cc_model_filenames");
    if (!p->n_cc_model_filenames)
        need_file(s, version_dir, p->default_model_filename, "the model's definition is not there",
                  "put it there, or set default_model_filename");
}

static void check_version_dir(const struct subject *s, int64_t number)
{
    struct strbuf dir = STRBUF_INIT;
    strbuf_printf(&dir, "%s/%" PRId64, s->dir, number);
    struct local_names files = {0};
    struct err *e = local_files(s->dir, number, &files);
    Inference__ModelConfig *p = config_copy_proto(s->written);
    bool named = *p->backend || *p->platform;
    if (!e && !s->c->settings->strict)
        e = config_guess_backend(p, s->model, (const char *const *)files.names, files.count);
    if (e) {
        check_add_error(s->c, s->model, named ? s->config : strbuf_str(&dir), e,
                        "put a model there that has its usual name, or name the backend in "
                        "config.pbtxt");
    } else {
        config_fill_defaults(p, s->model);
        check_definition(s, p, strbuf_str(&dir));
    }
    local_names_fini(&files);
    config_free_proto(p);
    strbuf_fini(&dir);
}

static void check_labels(const struct subject *s, const struct model_config *config)
{
    struct labels **labels;
    struct err *e = load_labels(config, s->dir, &labels);
    if (e)
        check_add_error(s->c, s->model, s->config, e,
                        "put the label file into the model's directory, one label a line");
    else
        version_free_labels(labels, config->output_count);
}

static void check_features(const struct subject *s, const struct model_config *config)
{
    const char *mend;
    struct err *e = features_check(s->c->settings->features, config, s->dir, &mend);
    if (e)
        check_add_error(s->c, s->model, s->config, e, mend);
}

bool check_files_written(const Inference__ModelConfig *p)
{
    bool written = p->n_input && p->n_output;
    for (size_t i = 0; written && i < p->n_input; i++)
        written = p->input[i]->data_type && p->input[i]->n_dims;
    for (size_t i = 0; written && i < p->n_output; i++)
        written = p->output[i]->data_type && p->output[i]->n_dims;
    return written;
}

/* True if no backend adds anything to the configuration. */
static bool check_files_is_final(const struct subject *s, const Inference__ModelConfig *p)
{
    return s->c->settings->strict || check_files_written(p) ||
           p->scheduling_choice_case ==
               INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

static void check_warmup(const struct subject *s, const struct model_config *config)
{
    for (size_t i = 0; i < config->proto->n_model_warmup; i++) {
        struct err *e = warmup_check(config, s->dir, i, check_files_is_final(s, config->proto));
        if (e)
            check_add_error(s->c, s->model, s->config, e,
                            "correct model_warmup; its files lie in the model's folder warmup");
    }
}

/* Checks that need the configuration as the server uses it. */
static void check_compiled(const struct subject *s, Inference__ModelConfig **p)
{
    struct model_config *config;
    struct err *e = config_compile(p, &config);
    if (e) {
        check_add_error(s->c, s->model, s->config, e, "correct the configuration");
        return;
    }
    check_labels(s, config);
    check_warmup(s, config);
    check_features(s, config);
    config_unref(config);
}

static void check_groups(const struct subject *s, Inference__ModelConfig *p)
{
    struct config_groups_machine machine;
    load_machine(p, NULL, &machine);
    config_groups_fill(p, &machine);
    struct err *e = config_groups_check(p, &machine);
    if (e)
        check_add_error(s->c, s->model, s->config, e,
                        strstr(err_message(e), "GPU")
                            ? "use KIND_CPU or KIND_AUTO on a machine without a GPU"
                            : "correct instance_group");
}

/* Tells that a plug-in is not there, and which are: "identity, onnxruntime", the directories.
 * kind  of plug-in, with its article */
static void check_add_missing(const struct subject *s, struct err *e, const char *kind,
                              const char *directory)
{
    struct strbuf sb = STRBUF_INIT;
    struct local_names names = {0};
    struct err *unread = local_directories(directory, &names);
    strbuf_printf(&sb, "name %s that is installed, or install this one; '%s' has %s", kind,
                  directory, unread || !names.count ? "none" : "");
    for (size_t i = 0; i < names.count; i++)
        strbuf_printf(&sb, "%s%s", i ? ", " : "", names.names[i]);
    check_add_error(s->c, s->model, s->config, e, strbuf_str(&sb));
    err_free(unread);
    local_names_fini(&names);
    strbuf_fini(&sb);
}

static void check_agents(const struct subject *s, const Inference__ModelConfig *p)
{
    const Inference__ModelRepositoryAgents *wanted = p->model_repository_agents;
    for (size_t i = 0; wanted && i < wanted->n_agents; i++) {
        struct err *e =
            repo_agent_find(s->c->settings->agent_directory, wanted->agents[i]->name, NULL);
        if (e)
            check_add_missing(s, e, "an agent", s->c->settings->agent_directory);
    }
}

/* Libraries that the configuration names, in the model's directory. */
static void check_libraries(const struct subject *s, Inference__ModelConfig *p, int64_t version)
{
    char *strategy = NULL;
    struct err *e = load_code_check(p, s->model, s->dir, version, LOAD_CODE_DISK);
    if (!e &&
        p->scheduling_choice_case != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        e = load_strategy_named(s->dir, p, &strategy);
    if (e)
        check_add_error(s->c, s->model, s->config, e,
                        "put the library into the model's directory, or name another one");
    mem_free(strategy);
}

static void check_backend(const struct subject *s, const Inference__ModelConfig *p, int64_t version)
{
    if (!*p->backend)
        return;
    struct err *e = backend_find(s->c->settings->backend_directory,
                                 &(struct backend_wanted){.name = p->backend,
                                                          .runtime = p->runtime,
                                                          .model = s->model,
                                                          .model_dir = s->dir,
                                                          .version = version});
    if (e)
        check_add_missing(s, e, "a backend", s->c->settings->backend_directory);
}

/* The rules of the configuration, as far as it goes without the backend.
 * version  whose files they are */
static void check_rules(const struct subject *s, int64_t version, const char *const *files,
                        size_t count)
{
    Inference__ModelConfig *p = config_copy_proto(s->written);
    struct err *e = NULL;
    if (!s->c->settings->strict)
        e = config_guess_backend(p, s->model, files, count);
    if (e) { /* reported with the version */
        err_free(e);
        config_free_proto(p);
        return;
    }
    config_fill_defaults(p, s->model);
    e = config_check_model(p, s->model,
                           check_files_is_final(s, p) ? CONFIG_CHECK_FULL : CONFIG_CHECK_PARTIAL);
    if (e) {
        check_add_error(s->c, s->model, s->config, e, "correct the configuration");
    } else {
        check_groups(s, p);
        check_backend(s, p, version);
        check_agents(s, p);
        check_libraries(s, p, version);
        check_compiled(s, &p);
    }
    config_free_proto(p);
}

void check_files_model(struct check *c, const struct check_model *m)
{
    struct subject s = {
        .c = c, .model = m->name, .dir = m->dir, .config = m->config, .written = m->proto};
    size_t count;
    int64_t *numbers = check_files_find_versions(&s, &count);
    struct local_names files = {0};
    if (count)
        err_free(local_files(m->dir, numbers[count - 1], &files));
    check_rules(&s, count ? numbers[count - 1] : 1, (const char *const *)files.names, files.count);
    local_names_fini(&files);
    for (size_t i = 0; i < count; i++)
        check_version_dir(&s, numbers[i]);
    mem_free(numbers);
}
