#include "instance.h"

#include <stdlib.h>

#include "../common/bentry.h"
#include "../common/berr.h"
#include "record.h"

const size_t instance_size = sizeof(struct instance);

/* The core of the deep learning accelerator that the instance is for, beside its GPU. */
static TRITONSERVER_Error *find_core(TRITONBACKEND_ModelInstance *handle, int64_t *ret_dla)
{
    uint32_t count = 0;
    const char *kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceSecondaryDeviceCount(handle, &count);
    *ret_dla = TRT_NO_DLA;
    return err || count == 0
               ? err
               : TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(handle, 0, &kind, ret_dla);
}

/* Profiles in the order of the plan, each once. */
static bool insert_profile(struct instance *instance, const struct profile *profile)
{
    size_t at = instance->profile_count;
    for (size_t i = 0; i < instance->profile_count; i++)
        if (instance->profiles[i].index == profile->index)
            return false;
    for (; at > 0 && instance->profiles[at - 1].index > profile->index; at--)
        instance->profiles[at] = instance->profiles[at - 1];
    instance->profiles[at] = *profile;
    instance->profile_count++;
    return true;
}

static TRITONSERVER_Error *add_profile(struct instance *instance, const char *name)
{
    struct profile profile = {.name = name};
    TRITONSERVER_Error *err =
        profile_find(name, instance->name, instance->engine->profile_count, &profile.index);
    if (!err)
        err = engine_limits(instance->engine, profile.index, &profile.limits);
    if (!err && !insert_profile(instance, &profile))
        free(profile.limits);
    return err;
}

static TRITONSERVER_Error *list_profiles(struct instance *instance)
{
    TRITONBACKEND_ModelInstance *handle = instance->place.handle;
    uint32_t count = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceProfileCount(handle, &count);
    if (err)
        return err;
    instance->profiles = calloc(count + 1, sizeof *instance->profiles);
    instance->contexts = calloc(count + 1, sizeof(struct trt_context *));
    instance->rooms = calloc(instance->engine->count + 1, sizeof *instance->rooms);
    if (!instance->profiles || !instance->contexts || !instance->rooms)
        return berr_no_memory();
    for (uint32_t i = 0; i < count && !err; i++) {
        const char *name;
        err = TRITONBACKEND_ModelInstanceProfileName(handle, i, &name);
        if (!err)
            err = add_profile(instance, name);
    }
    return err || count ? err : add_profile(instance, "0");
}

static TRITONSERVER_Error *make_contexts(struct instance *instance)
{
    void *stream;
    TRITONSERVER_Error *err = bcuda_stream(instance->cuda, &stream);
    if (!err)
        err = bcuda_enter(instance->cuda);
    if (err)
        return err;
    for (size_t i = 0; i < instance->profile_count && !err; i++)
        err = trt_context_new(instance->engine->trt, instance->profiles[i].index,
                              instance->model->options.grows, stream, &instance->contexts[i]);
    bcuda_leave();
    return err ? err : bcuda_wait(instance->cuda);
}

/* The input that says how many rows a request has. */
static const char *find_rows(const struct engine *engine)
{
    for (size_t i = 0; i < engine->count; i++)
        if (engine->tensors[i].is_input && !engine->tensors[i].is_shape)
            return engine->tensors[i].name;
    return NULL;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    int32_t device;
    int64_t dla;
    instance->model = model;
    TRITONSERVER_Error *err = bentry_refuse(
        handle, ~(unsigned)BENTRY_ON_GPU, TRITONSERVER_ERROR_INVALID_ARG,
        "unable to load model '%s', TensorRT backend supports only GPU device", model->name);
    if (!err)
        err = TRITONBACKEND_ModelInstanceName(handle, &instance->name);
    if (!err)
        err = TRITONBACKEND_ModelInstanceDeviceId(handle, &device);
    if (!err)
        err = find_core(handle, &dla);
    if (!err)
        err = bcuda_open_on(model->handle, device, model->options.priority, &instance->cuda);
    if (!err)
        err = engine_take(model, device, dla, &instance->engine);
    if (err)
        return err;
    instance->place = (struct brun_place){.handle = handle,
                                          .model = model->name,
                                          .max_batch_size = model->max_batch_size,
                                          .rows_of = find_rows(instance->engine),
                                          .cuda = instance->cuda};
    if (!model->options.busy)
        err = bcuda_sleep(instance->cuda);
    if (!err)
        err = list_profiles(instance);
    if (!err)
        err = make_contexts(instance);
    return err || !model->options.graphs ? err : record_all(instance);
}

void instance_fini(struct instance *instance)
{
    record_end(instance);
    TRITONSERVER_Error *err = instance->contexts ? bcuda_enter(instance->cuda) : NULL;
    for (size_t i = 0; instance->contexts && !err && i < instance->profile_count; i++)
        trt_context_free(instance->contexts[i]);
    if (instance->contexts && !err)
        bcuda_leave();
    berr_log(err, "failed to free TensorRT contexts");
    for (size_t i = 0; instance->rooms && i < instance->engine->count; i++)
        bcuda_free(instance->cuda, instance->rooms[i].memory);
    for (size_t i = 0; i < instance->profile_count; i++)
        free(instance->profiles[i].limits);
    free(instance->profiles);
    free(instance->contexts);
    free(instance->rooms);
    engine_give(instance->model, instance->engine);
    scratch_fini(&instance->place.scratch);
    bcuda_close(instance->cuda);
}

TRITONSERVER_Error *instance_room(struct instance *instance, size_t tensor, uint64_t size,
                                  void **ret)
{
    struct room *room = &instance->rooms[tensor];
    if (room->fixed && size <= room->fixed_size) {
        *ret = room->fixed;
        return NULL;
    }
    if (!room->memory || room->size < size) {
        bcuda_free(instance->cuda, room->memory);
        room->memory = NULL;
        room->size = 0;
        TRITONSERVER_Error *err = bcuda_alloc(instance->cuda, size, &room->memory);
        if (err)
            return err;
        room->size = size;
    }
    *ret = room->memory;
    return NULL;
}
