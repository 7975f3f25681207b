#include "repo/load/load_code.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/pb_field.h"
#include "os/files/beneath.h"
#include "os/files/file.h"
#include "proto/model_config.pb-c.h"
#include "repo/load/load_strategy.h"

#include <inttypes.h>
#include <string.h>

static bool load_code_has(const char *model_dir, int64_t version, const char *file)
{
    struct strbuf in_model = STRBUF_INIT;
    struct strbuf in_version = STRBUF_INIT;
    strbuf_printf(&in_model, "%s/%s", model_dir, file);
    strbuf_printf(&in_version, "%s/%" PRId64 "/%s", model_dir, version, file);
    bool found = file_exists(strbuf_str(&in_model)) || file_exists(strbuf_str(&in_version));
    strbuf_fini(&in_version);
    strbuf_fini(&in_model);
    return found;
}

/* True if the model's directory contains the library of its own backend, with the usual name or
 * the one in `runtime`. */
static bool brings_backend(const struct Inference__ModelConfig *proto, const char *model_dir,
                           int64_t version)
{
    struct strbuf file = STRBUF_INIT;
    strbuf_printf(&file, "libtriton_%s.so", proto->backend);
    bool brings = *proto->backend && load_code_has(model_dir, version, strbuf_str(&file));
    strbuf_fini(&file);
    bool library = *proto->runtime && strcmp(proto->runtime, "model.py") != 0;
    return brings || (library && load_code_has(model_dir, version, proto->runtime));
}

static struct err *refuse_strategy(const char *name, const char *what)
{
    return err_new(STATUS_UNSUPPORTED,
                   "model '%s': %s: a batching strategy is not loaded from a repository in cloud "
                   "storage; put the model on the local file system",
                   name, what);
}

/* Names a library of operators for OpenVINO; that backend loads it from the model's directory. */
#define EXTENSION "CPU_EXTENSION_PATH"

static bool names_extension(const struct Inference__ModelConfig *proto)
{
    for (size_t i = 0; i < proto->n_parameters; i++)
        if (strcmp(proto->parameters[i]->key, EXTENSION) == 0)
            return true;
    return false;
}

static struct err *check_cloud(const struct Inference__ModelConfig *proto, const char *name,
                               const char *model_dir, int64_t version)
{
    if (load_strategy_path(proto))
        return refuse_strategy(name, LOAD_STRATEGY_PARAMETER);
    if (load_code_has(model_dir, version, LOAD_STRATEGY_LIBRARY))
        return refuse_strategy(name, LOAD_STRATEGY_LIBRARY);
    if (names_extension(proto))
        return err_new(STATUS_UNSUPPORTED,
                       "model '%s': " EXTENSION
                       ": libraries are not loaded for a model from a repository in cloud "
                       "storage; put it on the local file system",
                       name);
    bool custom = strcmp(proto->platform, "custom") == 0 || strcmp(proto->backend, "custom") == 0;
    if (custom || brings_backend(proto, model_dir, version))
        return err_new(
            STATUS_UNSUPPORTED,
            "model '%s': a custom backend is not loaded from a repository in cloud storage; "
            "put it on the local file system",
            name);
    if (proto->model_operations && proto->model_operations->n_op_library_filename)
        return err_new(STATUS_UNSUPPORTED,
                       "model '%s': op_library_filename '%s': libraries are not loaded for a model "
                       "from a repository in cloud storage; put it on the local file system",
                       name, proto->model_operations->op_library_filename[0]);
    return NULL;
}

/* A model that PyTorch has compiled is an archive with a library in it. */
static struct err *load_code_check_compiled(const struct Inference__ModelConfig *proto,
                                            const char *name, enum load_code_from from)
{
    if (from == LOAD_CODE_DISK || strcmp(proto->platform, "torch_aoti") != 0)
        return NULL;
    return err_new(
        STATUS_UNSUPPORTED,
        from == LOAD_CODE_STORE
            ? "model '%s': platform 'torch_aoti': its file has a library in it, which is "
              "not loaded for a model from a repository in cloud storage; put it on the "
              "local file system"
            : "model '%s': platform 'torch_aoti': its file has a library in it, which a "
              "load request may not bring: put it into the model repository, or allow "
              "it with --allow-library-upload",
        name);
}

/* The name of a file relative to a directory that must contain it; NULL if it is absolute and
 * lies elsewhere. The caller frees it. */
static char *relative_to(const char *dir, const char *file)
{
    if (*file != '/')
        return mem_strdup(file);
    char *root = file_absolute(dir);
    char *path = file_absolute(file);
    size_t len = strlen(root);
    char *rest = NULL;
    if (strncmp(path, root, len) == 0 && path[len] == '/')
        rest = mem_strdup(path + len + 1);
    mem_free(path);
    mem_free(root);
    return rest;
}

struct err *load_code_settle(const char *model_dir, const char *file, char **ret)
{
    char *rest = relative_to(model_dir, file);
    struct err *e = rest ? beneath_check(model_dir, rest)
                         : err_new(STATUS_INVALID_ARG, "'%s' leads out of '%s'", file, model_dir);
    if (!e) {
        char *joined = file_join(model_dir, rest);
        *ret = file_absolute(joined);
        mem_free(joined);
    }
    mem_free(rest);
    return e;
}

static struct err *settle_library(const char *model_dir, char **file)
{
    char *path;
    struct err *e = load_code_settle(model_dir, *file, &path);
    if (e)
        return e;
    pb_field_set_string(file, path);
    mem_free(path);
    return NULL;
}

struct err *load_code_check(struct Inference__ModelConfig *proto, const char *name,
                            const char *model_dir, int64_t version, enum load_code_from from)
{
    struct err *e = load_code_check_compiled(proto, name, from);
    if (e || from == LOAD_CODE_STORE)
        return e ? e : check_cloud(proto, name, model_dir, version);
    for (size_t i = 0; proto->model_operations && !e; i++) {
        if (i == proto->model_operations->n_op_library_filename)
            break;
        e = settle_library(model_dir, &proto->model_operations->op_library_filename[i]);
    }
    return err_wrap(
        e, "model '%s': op_library_filename: expected a library in the model's directory", name);
}
