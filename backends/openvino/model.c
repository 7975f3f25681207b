#include "model.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/blog.h"
#include "../common/bfile.h"
#include "check.h"
#include "complete.h"
#include "layout.h"
#include "prepare.h"
#include "signature.h"

static TRITONSERVER_Error *openvino_model_read_config(struct model *model)
{
    TRITONSERVER_Error *err =
        bconfig_read(model->handle, &model->config_doc, &model->config, &model->max_batch_size);
    return err ? err : options_read(model->vino, model->config, &model->options);
}

/* A library of operators is code, so it must lie in the model's directory, also after links are
 * resolved. A relative path begins there.
 * ret_library  room for PATH_MAX */
static TRITONSERVER_Error *find_extension(const struct model *model, char *ret_library)
{
    const char *library = model->options.extension, *folder;
    TRITONBACKEND_ArtifactType kind;
    char inside[PATH_MAX], path[PATH_MAX];
    TRITONSERVER_Error *err = TRITONBACKEND_ModelRepository(model->handle, &kind, &folder);
    if (err)
        return err;
    bool absolute = *library == '/';
    snprintf(path, sizeof path, "%s%s%s", absolute ? "" : folder, absolute ? "" : "/", library);
    if (!realpath(path, ret_library) || !realpath(folder, inside))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "model '%s': the library '%s' of CPU_EXTENSION_PATH cannot be opened: %s",
                        model->name, path, strerror(errno));
    size_t length = strlen(inside);
    if (strncmp(ret_library, inside, length) == 0 && ret_library[length] == '/')
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s': the library '%s' of CPU_EXTENSION_PATH has to lie in the model's "
                    "directory",
                    model->name, library);
}

/* Loads the operators in a core of the model's own, so that other models do not get them. */
static TRITONSERVER_Error *load_extension(struct model *model)
{
    char library[PATH_MAX];
    if (!model->options.extension)
        return NULL;
    TRITONSERVER_Error *err = find_extension(model, library);
    if (!err)
        err = vino_err(ov_core_create(&model->own_core), "starting the runtime");
    if (!err)
        err = vino_err(ov_core_add_extension(model->own_core, library),
                       "loading custom CPU extensions");
    return err;
}

static const ov_core_t *core_of(const struct model *model)
{
    return model->own_core ? model->own_core : model->vino->core;
}

TRITONSERVER_Error *model_read(struct model *model)
{
    ov_model_free(model->graph);
    model->graph = NULL;
    TRITONSERVER_Error *err = vino_err(
        ov_core_read_model(core_of(model), model->path, NULL, &model->graph), "reading model");
    return err ? err : signature_read(model);
}

static TRITONSERVER_Error *openvino_model_complete_config(struct model *model)
{
    bool wanted = false;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelAutoCompleteConfig(model->handle, &wanted);
    if (!err && wanted)
        err = complete_fill_in(model);
    return err || !wanted ? err : openvino_model_read_config(model);
}

/* The variable arguments are pairs of strings; further ones are not read. */
static TRITONSERVER_Error *openvino_model_compile(struct model *model)
{
    const struct options *options = &model->options;
    const char *args[2 * OPTIONS_MAX_PROPERTIES] = {NULL};
    for (size_t i = 0; i < options->property_count; i++) {
        args[2 * i] = options->properties[i].key;
        args[2 * i + 1] = options->properties[i].value;
    }
    ov_compiled_model_free(model->compiled);
    model->compiled = NULL;
    return vino_err(ov_core_compile_model(core_of(model), model->graph, options->device,
                                          2 * options->property_count, &model->compiled, args[0],
                                          args[1], args[2], args[3], args[4], args[5], args[6],
                                          args[7], args[8], args[9], args[10], args[11], args[12],
                                          args[13], args[14], args[15]),
                    "loading model");
}

static bool takes_any_batch(const struct model_list *outputs)
{
    for (size_t i = 0; i < outputs->count; i++)
        if (outputs->tensors[i].rank == 0 || outputs->tensors[i].dims[0] != -1)
            return false;
    return true;
}

static TRITONSERVER_Error *openvino_model_build(struct model *model, int64_t batch)
{
    TRITONSERVER_Error *err = prepare_graph(model, batch);
    if (!err && batch == -1 && !takes_any_batch(&model->outputs))
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "an output's first dimension does not follow the inputs'");
    if (!err)
        err = check_outputs(model);
    return err ? err : openvino_model_compile(model);
}

/* Compiles the model for any batch size if possible; else for one size, max_batch_size. */
static TRITONSERVER_Error *build_for_batches(struct model *model)
{
    int64_t largest = model->max_batch_size;
    if (largest == 0)
        return openvino_model_build(model, 0);
    bool open = largest > 1 && !model->options.fixed_batch;
    TRITONSERVER_Error *why = open ? openvino_model_build(model, -1) : NULL;
    if (open && !why)
        return NULL;
    model->fixed_batch = largest;
    TRITONSERVER_Error *err = why ? model_read(model) : NULL;
    if (!err)
        err = openvino_model_build(model, largest);
    if (!err && why)
        blog_warn("model '%s' takes batches of %lld only, since it cannot be compiled for any "
                  "size: %s",
                  model->name, (long long)largest, TRITONSERVER_ErrorMessage(why));
    berr_drop(why);
    return err;
}

static void warn_of_model(const struct model *model)
{
    check_warn_of_types(model, "input", &model->inputs);
    check_warn_of_types(model, "output", &model->outputs);
    if (model->has_state)
        blog_warn("model '%s' has a state: each run begins with the one that the file has",
                  model->name);
    const char *threads = bconfig_parameter(model->config, "COMPILATION_NUM_THREADS");
    if (threads && *threads && strcmp(model->options.device, "CPU") == 0)
        blog_warn("model '%s': COMPILATION_NUM_THREADS has no effect, since OpenVINO's device CPU "
                  "does not know it",
                  model->name);
}

static TRITONSERVER_Error *openvino_model_load(struct model *model)
{
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model->handle, &model->name);
    if (!err)
        err = openvino_model_read_config(model);
    if (!err)
        err = bfile_of_model(model->handle, model->config, "model.xml", &model->path);
    if (!err)
        err = bfile_check_folder(model->path, model->name);
    if (!err)
        err = load_extension(model);
    if (!err)
        err = model_read(model);
    if (!err)
        err = openvino_model_complete_config(model);
    if (!err)
        err = check_inputs(model);
    if (!err)
        err = layout_has_state(model, &model->has_state);
    if (!err)
        err = build_for_batches(model);
    if (!err)
        warn_of_model(model);
    ov_model_free(model->graph);
    model->graph = NULL;
    return err;
}

const size_t model_size = sizeof(struct model);

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    model->vino = runtime;
    model->handle = handle;
    return openvino_model_load(model);
}

void model_fini(struct model *model)
{
    ov_compiled_model_free(model->compiled);
    ov_model_free(model->graph);
    if (model->own_core) /* freeing the core also frees the runtime's last error text */
        ov_core_free(model->own_core);
    signature_free(model);
    yyjson_doc_free(model->config_doc);
    free(model->path);
}
