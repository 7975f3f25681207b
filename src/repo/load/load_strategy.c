#include "repo/load/load_strategy.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"
#include "plugin/backend.h"
#include "plugin/batch_strategy.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "repo/load/load_code.h"

#include <inttypes.h>
#include <string.h>

const char *load_strategy_path(const struct Inference__ModelConfig *proto)
{
    for (size_t i = 0; i < proto->n_parameters; i++)
        if (strcmp(proto->parameters[i]->key, LOAD_STRATEGY_PARAMETER) == 0)
            return proto->parameters[i]->value ? proto->parameters[i]->value->string_value : "";
    return NULL;
}

static bool has_sequences(const struct Inference__ModelConfig *proto)
{
    return proto->scheduling_choice_case ==
           INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING;
}

struct err *load_strategy_named(const char *model_dir, const struct Inference__ModelConfig *proto,
                                char **ret)
{
    const char *path = load_strategy_path(proto);
    *ret = NULL;
    if (path && has_sequences(proto))
        return err_new(STATUS_INVALID_ARG, LOAD_STRATEGY_PARAMETER
                       " cannot be specified with sequence batcher, using default batching "
                       "strategy");
    struct err *e = path ? load_code_settle(model_dir, path, ret) : NULL;
    if (!e)
        return NULL;
    struct err *told =
        err_code(e) == STATUS_NOT_FOUND
            ? err_new(STATUS_NOT_FOUND, "Batching library path not found: %s", path)
            : err_new(STATUS_INVALID_ARG,
                      "Batching library path escapes model repository. " LOAD_STRATEGY_PARAMETER
                      ": %s; expected a library in the model's directory",
                      err_message(e));
    err_free(e);
    return told;
}

static char *library_in(const char *dir)
{
    char *path = file_join(dir, LOAD_STRATEGY_LIBRARY);
    if (file_exists(path))
        return path;
    mem_free(path);
    return NULL;
}

static char *library_of(const char *backends, const char *backend)
{
    char *dir = file_join(backends, backend);
    char *path = library_in(dir);
    mem_free(dir);
    return path;
}

/* The first library with the usual name; NULL = there is none. The caller frees the path. */
static char *usual_library(const struct plugin_model *m, const char *runtime, const char *backends)
{
    struct strbuf version = STRBUF_INIT;
    strbuf_printf(&version, "%s/%" PRId64, m->dir, m->version);
    char *found = library_in(strbuf_str(&version));
    if (!found)
        found = library_in(m->dir);
    if (!found)
        found = library_of(backends, m->backend->name);
    if (!found && strcmp(runtime, "model.py") == 0) /* a backend written in Python */
        found = library_of(backends, "python");
    strbuf_fini(&version);
    return found;
}

static struct err *load_strategy_open_library(struct plugin_model *m, const char *path)
{
    if (m->backend->entries.leave)
        return err_new(STATUS_UNSUPPORTED,
                       "model '%s': the batching strategy '%s' would run in the server, and the "
                       "model is to run in a process of its own: expected one of parameter "
                       "ISOLATION and a batching strategy",
                       m->name, path);
    LOG_INFO("Loading custom batching strategy library %s for model %s", path, m->name);
    return batch_strategy_open(path, m, &m->strategy);
}

struct err *load_strategy(struct plugin_model *m, const struct Inference__ModelConfig *proto,
                          const char *backends)
{
    char *path;
    struct err *e = load_strategy_named(m->dir, proto, &path);
    if (!e && !path && !has_sequences(proto))
        path = usual_library(m, proto->runtime, backends);
    if (path)
        e = load_strategy_open_library(m, path);
    mem_free(path);
    return e;
}
