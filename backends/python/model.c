#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "common/bconfig.h"
#include "common/bcuda.h"
#include "common/bentry.h"
#include "common/berr.h"
#include "common/bfile.h"
#include "host.h"

static const char DIRECTORY[] = "$$TRITON_MODEL_DIRECTORY";

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    struct runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime)
        return berr_no_memory();
    TRITONSERVER_Error *err = options_new(backend, &runtime->options);
    if (!err)
        runtime->environments = environments_new();
    if (!err && !runtime->environments)
        err = berr_no_memory();
    if (err)
        bentry_end(runtime);
    else
        *ret_runtime = runtime;
    return err;
}

void bentry_end(void *of)
{
    struct runtime *runtime = of;
    bcuda_end();
    if (!runtime)
        return;
    environments_free(runtime->environments);
    options_free(runtime->options);
    free(runtime);
}

/* The path of the execution environment that the configuration names. Owned by the caller. */
static char *model_environment(const struct model *model, const char *said)
{
    char *path;
    const char *place = strstr(said, DIRECTORY);
    if (!place)
        return strdup(said);
    const char *rest = place + sizeof DIRECTORY - 1;
    return asprintf(&path, "%.*s%s%s", (int)(place - said), said, model->repository, rest) < 0
               ? NULL
               : path;
}

static TRITONSERVER_Error *model_find_environment(struct model *model, yyjson_val *config)
{
    const char *said = bconfig_parameter(config, "EXECUTION_ENV_PATH");
    if (!said || !*said)
        return NULL;
    char *path = model_environment(model, said);
    if (!path)
        return berr_no_memory();
    TRITONSERVER_Error *err =
        environments_take(model->runtime->environments, path, &model->environment);
    free(path);
    return err;
}

static TRITONSERVER_Error *model_read_parameters(struct model *model, yyjson_val *config)
{
    const char *force = bconfig_parameter(config, "FORCE_CPU_ONLY_INPUT_TENSORS");
    if (force && strcmp(force, "yes") != 0 && strcmp(force, "no") != 0)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: %s'", force);
    model->gpu_inputs = force && strcmp(force, "no") == 0;
    const char *limit = bconfig_parameter(config, "EXECUTE_TIMEOUT_SECONDS");
    int64_t seconds = 0;
    if (!limit)
        return NULL;
    TRITONSERVER_Error *err = bconfig_parse_int(limit, &seconds);
    if (!err && seconds < 1)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "it is %s, and has to be 1 or more", limit);
    model->execute_ns = (uint64_t)seconds * 1000000000;
    return berr_about(err, "parameter 'EXECUTE_TIMEOUT_SECONDS' of model '%s'", model->name);
}

/* Takes over what the configuration says now. */
static TRITONSERVER_Error *model_read(struct model *model)
{
    yyjson_doc *doc;
    TRITONSERVER_Error *err = bconfig_of_model(model->handle, &doc);
    if (err)
        return err;
    yyjson_val *config = yyjson_doc_get_root(doc);
    const char *file = yyjson_get_str(yyjson_obj_get(config, "default_model_filename"));
    yyjson_val *policy = yyjson_obj_get(config, "model_transaction_policy");
    model->decoupled = yyjson_get_bool(yyjson_obj_get(policy, "decoupled"));
    model->max_batch_size = bconfig_int(yyjson_obj_get(config, "max_batch_size"), 0);
    free(model->config);
    model->config = yyjson_write(doc, 0, NULL);
    if (!model->file &&
        asprintf(&model->file, "%s/%llu/%s", model->repository, (unsigned long long)model->version,
                 file && *file ? file : "model.py") < 0)
        model->file = NULL;
    if (!model->file || !model->config)
        err = berr_no_memory();
    if (!err)
        err = bfile_check_kind(model->file, model->name);
    if (!err)
        err = model_read_parameters(model, config);
    if (!err && !model->environment)
        err = model_find_environment(model, config);
    yyjson_doc_free(doc);
    return err;
}

static TRITONSERVER_Error *model_set_config(struct model *model, const char *text)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    yyjson_mut_doc *copy = doc ? yyjson_doc_mut_copy(doc, NULL) : NULL;
    TRITONSERVER_Error *err =
        copy ? bconfig_set_of_model(model->handle, copy)
             : berr_new(TRITONSERVER_ERROR_INTERNAL, "Failed to parse auto-complete JSON.");
    yyjson_doc_free(doc);
    yyjson_mut_doc_free(copy);
    return err ? err : model_read(model);
}

static TRITONSERVER_Error *model_complete(struct model *model)
{
    bool wanted = false;
    char *config = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelAutoCompleteConfig(model->handle, &wanted);
    if (err || !wanted)
        return err;
    err = host_new(model, model->name, &model->spare);
    const char *texts[] = {model->file, model->runtime->options->backend, model->name,
                           model->config};
    if (!err)
        err = host_ask(model->spare, LINK_COMPLETE, 0, texts, sizeof texts / sizeof texts[0], 0,
                       &config);
    if (!err)
        err = model_set_config(model, config);
    free(config);
    return err;
}

static TRITONSERVER_Error *model_name(struct model *model)
{
    const char *name, *repository;
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model->handle, &name);
    if (!err)
        err = TRITONBACKEND_ModelVersion(model->handle, &model->version);
    if (!err)
        err = TRITONBACKEND_ModelServer(model->handle, &model->server);
    if (!err)
        err = TRITONBACKEND_ModelRepository(model->handle, &type, &repository);
    if (err)
        return err;
    if (type != TRITONBACKEND_ARTIFACT_FILESYSTEM)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "unsupported artifact type for model '%s'",
                        name);
    model->name = strdup(name);
    model->repository = strdup(repository);
    return model->name && model->repository ? NULL : berr_no_memory();
}

const size_t model_size = sizeof(struct model);

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    model->handle = handle;
    model->runtime = runtime;
    pthread_mutex_init(&model->lock, NULL);
    TRITONSERVER_Error *err = model_name(model);
    if (!err)
        err = model_read(model);
    return err ? err : model_complete(model);
}

void model_fini(struct model *model)
{
    host_lost_and_free(model->spare);
    pthread_mutex_destroy(&model->lock);
    free(model->name);
    free(model->repository);
    free(model->file);
    free(model->config);
    environments_give(model->runtime->environments, model->environment);
}
