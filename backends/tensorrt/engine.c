#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/bfile.h"
#include "complete.h"

enum { CAPABILITY_TEXT = 32 };

static void engine_free(struct engine *engine)
{
    TRITONSERVER_Error *err = engine->trt ? bcuda_enter(engine->cuda) : NULL;
    if (engine->trt && !err) {
        trt_free(engine->trt);
        bcuda_leave();
    }
    berr_log(err, "failed to free a TensorRT engine");
    bcuda_close(engine->cuda);
    free(engine->roles);
    free(engine);
}

/* The file that cc_model_filenames names for the GPU, or else the usual one. */
static TRITONSERVER_Error *find_plan(const struct model *model, const struct bcuda *cuda,
                                     char **ret_path)
{
    int major = 0, minor = 0;
    char capability[CAPABILITY_TEXT];
    TRITONSERVER_Error *err = bcuda_capability(cuda, &major, &minor);
    if (err)
        return err;
    snprintf(capability, sizeof capability, "%d.%d", major, minor);
    const char *named = yyjson_get_str(
        yyjson_obj_get(yyjson_obj_get(model->config, "cc_model_filenames"), capability));
    return named ? bfile_of_model(model->handle, NULL, named, ret_path)
                 : bfile_of_model(model->handle, model->config, "model.plan", ret_path);
}

static TRITONSERVER_Error *load_plan(const struct model *model, struct engine *engine)
{
    char *path = NULL;
    void *plan = NULL;
    size_t size = 0;
    TRITONSERVER_Error *err = find_plan(model, engine->cuda, &path);
    if (!err)
        err = bfile_read(path, model->name, &plan, &size);
    if (!err)
        err = bcuda_enter(engine->cuda);
    if (!err) {
        err = trt_load(plan, size, engine->dla, model->runtime->host_code, &engine->trt);
        bcuda_leave();
    }
    free(plan);
    free(path);
    return err;
}

static TRITONSERVER_Error *engine_fill(const struct model *model, struct engine *engine)
{
    TRITONSERVER_Error *err =
        bcuda_open_on(model->handle, engine->device, BCUDA_USUAL, &engine->cuda);
    if (!err)
        err = load_plan(model, engine);
    if (err)
        return err;
    engine->tensors = trt_tensors(engine->trt, &engine->count);
    engine->profile_count = trt_profiles(engine->trt);
    for (size_t i = 0; i < engine->count; i++)
        engine->input_count += engine->tensors[i].is_input;
    return NULL;
}

/* Reads the plan into a new engine; it is the first of the list. Under the lock: one engine for
 * each place, whichever instance comes first. */
static TRITONSERVER_Error *engine_add(struct model *model, int32_t device, int64_t dla,
                                      struct engine **ret)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return berr_no_memory();
    engine->device = device;
    engine->dla = dla;
    TRITONSERVER_Error *err = engine_fill(model, engine);
    if (err) {
        TRITONSERVER_Error *named =
            berr_new(TRITONSERVER_ErrorCode(err), "failed to load model '%s': %s", model->name,
                     TRITONSERVER_ErrorMessage(err));
        berr_drop(err);
        engine_free(engine);
        return named;
    }
    engine->next = model->engines;
    model->engines = engine;
    *ret = engine;
    return NULL;
}

static TRITONSERVER_Error *engine_find(struct model *model, int32_t device, int64_t dla,
                                       struct engine **ret)
{
    *ret = model->engines;
    while (*ret && ((*ret)->device != device || (*ret)->dla != dla))
        *ret = (*ret)->next;
    return *ret ? NULL : engine_add(model, device, dla, ret);
}

/* Once for an engine, when the configuration is complete. */
static TRITONSERVER_Error *engine_check(const struct model *model, struct engine *engine)
{
    if (engine->roles)
        return NULL;
    struct check_role *roles = calloc(engine->count + 1, sizeof *roles);
    if (!roles)
        return berr_no_memory();
    TRITONSERVER_Error *err =
        check_tensors(model->name, model->config, engine->tensors, engine->count, roles);
    if (err)
        free(roles);
    else
        engine->roles = roles;
    return err;
}

TRITONSERVER_Error *engine_take(struct model *model, int32_t device, int64_t dla,
                                struct engine **ret)
{
    struct engine *engine;
    pthread_mutex_lock(&model->lock);
    TRITONSERVER_Error *err = engine_find(model, device, dla, &engine);
    if (!err)
        err = engine_check(model, engine);
    if (!err) {
        engine->users++;
        *ret = engine;
    }
    pthread_mutex_unlock(&model->lock);
    return err;
}

void engine_give(struct model *model, struct engine *engine)
{
    if (!engine)
        return;
    pthread_mutex_lock(&model->lock);
    engine->users--;
    bool goes = engine->users == 0 && engine->next;
    if (goes) {
        struct engine **at = &model->engines;
        while (*at != engine)
            at = &(*at)->next;
        *at = engine->next;
    }
    pthread_mutex_unlock(&model->lock);
    if (goes)
        engine_free(engine);
}

void engine_free_all(struct model *model)
{
    while (model->engines) {
        struct engine *engine = model->engines;
        model->engines = engine->next;
        engine_free(engine);
    }
}

TRITONSERVER_Error *engine_limits(const struct engine *engine, int32_t profile,
                                  struct profile_limits **ret)
{
    struct profile_limits *limits = calloc(engine->input_count + 1, sizeof *limits);
    if (!limits)
        return berr_no_memory();
    size_t input = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < engine->count && !err; i++)
        if (engine->tensors[i].is_input)
            err = trt_limits(engine->trt, i, profile, &limits[input++]);
    if (err)
        free(limits);
    else
        *ret = limits;
    return err;
}

static TRITONSERVER_Error *rows_of_profile(const struct model *model, const struct engine *engine,
                                           const char *name, int64_t *rows)
{
    struct profile profile = {.name = name};
    TRITONSERVER_Error *err =
        profile_find(name, model->name, engine->profile_count, &profile.index);
    if (!err)
        err = engine_limits(engine, profile.index, &profile.limits);
    if (err)
        return err;
    int64_t most = profile_most_rows(&profile, engine->input_count);
    *rows = most > *rows ? most : *rows;
    free(profile.limits);
    return NULL;
}

/* The largest batch of the profiles that the configuration names; of the first if it names none. */
static TRITONSERVER_Error *engine_most_rows(const struct model *model, const struct engine *engine,
                                            int64_t *ret_rows)
{
    size_t group_index, group_count, index, count, named = 0;
    yyjson_val *group, *profile;
    TRITONSERVER_Error *err = NULL;
    *ret_rows = 0;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "instance_group"), group_index, group_count,
                       group)
    {
        yyjson_arr_foreach(yyjson_obj_get(group, "profile"), index, count, profile)
        {
            named++;
            if (!err)
                err = rows_of_profile(model, engine, yyjson_get_str(profile), ret_rows);
        }
    }
    return err || named ? err : rows_of_profile(model, engine, "0", ret_rows);
}

TRITONSERVER_Error *engine_complete(struct model *model)
{
    yyjson_val *group = yyjson_arr_get_first(yyjson_obj_get(model->config, "instance_group"));
    yyjson_val *core = yyjson_arr_get_first(yyjson_obj_get(group, "secondary_devices"));
    int64_t device = bconfig_int(yyjson_arr_get_first(yyjson_obj_get(group, "gpus")), 0);
    int64_t dla = core ? bconfig_int(yyjson_obj_get(core, "device_id"), 0) : TRT_NO_DLA;
    int64_t rows = 0;
    struct engine *engine;
    yyjson_mut_doc *doc = NULL;
    TRITONSERVER_Error *err = engine_find(model, (int32_t)device, dla, &engine);
    if (!err)
        err = engine_most_rows(model, engine, &rows);
    if (!err)
        err = complete_config(model->name, model->config_doc, engine->tensors, engine->count, rows,
                              &doc);
    if (!err)
        err = bconfig_set_of_model(model->handle, doc);
    yyjson_mut_doc_free(doc);
    return err;
}
