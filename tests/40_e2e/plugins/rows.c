/* A backend made of backends/common, with its tensors on a GPU: y is x, of every request of a
 * batch, by way of one tensor of the whole batch. */
#include "../../../backends/common/bentry.h"
#include "../../../backends/common/berr.h"
#include "../../../backends/common/binput.h"
#include "../../../backends/common/boutput.h"

enum { MAX_BATCH_SIZE = 4 };

struct model {
    const char *name;
};

struct instance {
    struct brun_place place;
    struct bcuda *cuda;
};

const size_t model_size = sizeof(struct model), instance_size = sizeof(struct instance);

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    (void)backend;
    (void)ret_runtime;
    return NULL;
}

void bentry_end(void *runtime)
{
    (void)runtime;
}

bool bentry_uses_gpus(void *runtime)
{
    (void)runtime;
    return true;
}

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    (void)runtime;
    return TRITONBACKEND_ModelName(handle, &model->name);
}

void model_fini(struct model *model)
{
    (void)model;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_Error *err = bcuda_open(handle, &instance->cuda);
    instance->place = (struct brun_place){.handle = handle,
                                          .model = model->name,
                                          .max_batch_size = MAX_BATCH_SIZE,
                                          .cuda = instance->cuda};
    return err;
}

void instance_fini(struct instance *instance)
{
    scratch_fini(&instance->place.scratch);
    bcuda_close(instance->cuda);
}

static TRITONSERVER_Error *rows_work(struct brun *run, void *of)
{
    struct instance *instance = of;
    struct binput x = {.name = "x", .datatype = TRITONSERVER_TYPE_FP32};
    struct boutput y = {.name = "y", .datatype = TRITONSERVER_TYPE_FP32, .served = true};
    struct boutput_tensor result = {.on_gpu = true};
    uint64_t size = 0;
    void *room = NULL;
    TRITONSERVER_Error *err = binput_collect(run, &x, 1);
    if (err || run->batch_size == 0)
        return err;
    err = boutput_select(run, &y, 1);
    if (!err)
        err = binput_gpu_size(run, &x, run->rows, &size, &result.data);
    if (!err && !result.data) {
        err = bcuda_stage(instance->cuda, size, &room);
        if (!err)
            binput_gpu_copy(run, &x, room, size);
        result.data = room;
    }
    result.rank = binput_shape(run, &x, run->rows, result.shape);
    return err ? err : boutput_scatter(run, &y, run->rows, &result);
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    brun_requests(&instance->place, requests, count, rows_work, instance);
}
