#include "batch_io.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bcomputed.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "input.h"

/* A computed input. */
struct batch_input {
    enum bcomputed_kind kind;
    const struct model_tensor *source;
    const struct model_tensor *target;
};

static TRITONSERVER_Error *onnxruntime_batch_io_find_input(const struct model *model,
                                                           const char *name,
                                                           struct model_tensor **ret)
{
    *ret = model_find(model->inputs, model->input_count, name);
    if (*ret)
        return NULL;
    return berr_new(
        TRITONSERVER_ERROR_INVALID_ARG,
        "unable to load model '%s', batch_input or batch_output names '%s', which is no "
        "input of the model",
        model->name, name ? name : "");
}

static TRITONSERVER_Error *onnxruntime_batch_io_mark_ragged(struct model *model)
{
    size_t index, count;
    yyjson_val *entry;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "input"), index, count, entry)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
        struct model_tensor *tensor = model_find(model->inputs, model->input_count, name);
        if (!tensor || !yyjson_get_bool(yyjson_obj_get(entry, "allow_ragged_batch")))
            continue;
        if (tensor->rank != 1 || tensor->dims[0] != -1)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "unable to load model '%s', configuration expects model provides input "
                            "with shape [-1] for ragged input '%s', model provides %zu dimensions",
                            model->name, name, tensor->rank);
        tensor->ragged = true;
    }
    return NULL;
}

static TRITONSERVER_Error *read_target(struct model *model, yyjson_val *entry, const char *name)
{
    struct batch_input *to = &model->batch_inputs[model->batch_input_count];
    struct model_tensor *source = NULL, *target = NULL;
    const char *type = yyjson_get_str(yyjson_obj_get(entry, "data_type"));
    to->kind = bcomputed_kind_of(entry);
    if (to->kind == BCOMPUTED_NONE) {
        const char *kind = yyjson_get_str(yyjson_obj_get(entry, "kind"));
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', unexpected batch input kind '%s'", model->name,
                        kind ? kind : "");
    }
    TRITONSERVER_Error *err = onnxruntime_batch_io_find_input(
        model, yyjson_get_str(yyjson_arr_get_first(yyjson_obj_get(entry, "source_input"))),
        &source);
    if (!err)
        err = onnxruntime_batch_io_find_input(model, name, &target);
    if (!err && bconfig_datatype(type) != target->datatype)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "unable to load model '%s', configuration expects datatype %s for batch "
                       "input '%s', model provides TYPE_%s",
                       model->name, type ? type : "", name,
                       TRITONSERVER_DataTypeString(target->datatype));
    if (err)
        return err;
    to->source = source;
    to->target = target;
    model->batch_input_count++;
    return NULL;
}

static TRITONSERVER_Error *onnxruntime_batch_io_read_inputs(struct model *model)
{
    size_t index, count, i, targets, total = 0;
    yyjson_val *entry, *name;
    yyjson_val *entries = yyjson_obj_get(model->config, "batch_input");
    yyjson_arr_foreach(entries, index, count, entry) total +=
        yyjson_arr_size(yyjson_obj_get(entry, "target_name"));
    if (total == 0)
        return NULL;
    model->batch_inputs = calloc(total, sizeof *model->batch_inputs);
    if (!model->batch_inputs)
        return berr_no_memory();
    yyjson_arr_foreach(entries, index, count, entry)
    {
        yyjson_arr_foreach(yyjson_obj_get(entry, "target_name"), i, targets, name)
        {
            TRITONSERVER_Error *err = read_target(model, entry, yyjson_get_str(name));
            if (err)
                return err;
        }
    }
    return NULL;
}

static TRITONSERVER_Error *onnxruntime_batch_io_read_outputs(struct model *model)
{
    size_t index, count, i, targets;
    yyjson_val *entry, *name;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "batch_output"), index, count, entry)
    {
        struct model_tensor *source;
        TRITONSERVER_Error *err = onnxruntime_batch_io_find_input(
            model, yyjson_get_str(yyjson_arr_get_first(yyjson_obj_get(entry, "source_input"))),
            &source);
        if (err)
            return err;
        yyjson_arr_foreach(yyjson_obj_get(entry, "target_name"), i, targets, name)
        {
            struct model_tensor *output =
                model_find(model->outputs, model->output_count, yyjson_get_str(name));
            if (!output)
                return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                                "unable to load model '%s', batch_output names '%s', which is no "
                                "output of the model",
                                model->name, yyjson_get_str(name));
            output->divided_by = source;
        }
    }
    return NULL;
}

TRITONSERVER_Error *batch_io_read(struct model *model)
{
    TRITONSERVER_Error *err = onnxruntime_batch_io_mark_ragged(model);
    if (!err)
        err = onnxruntime_batch_io_read_inputs(model);
    return err ? err : onnxruntime_batch_io_read_outputs(model);
}

void batch_io_free(struct model *model)
{
    free(model->batch_inputs);
    model->batch_inputs = NULL;
}

static TRITONSERVER_Error *bind_one(struct run *run, const struct batch_input *b, size_t place)
{
    const struct ort *ort = run_ort(run);
    const struct binput *source;
    int64_t shape[2];
    uint64_t size;
    size_t rank;
    TRITONSERVER_Error *err = input_find(run, b->source, &source);
    if (!err)
        err = bcomputed_shape(run->batch, source, b->kind, shape, &rank, &size);
    if (err)
        return err;
    void *data = scratch_take(&run->batch->place->scratch, size);
    if (!data)
        return berr_no_memory();
    bcomputed_fill(run->batch, source, b->kind, b->target->datatype, data, size / sizeof(int32_t));
    run->input_names[place] = b->target->name;
    return ort_err(ort->api, ort->api->CreateTensorWithDataAsOrtValue(ort->cpu, data, size, shape,
                                                                      rank, b->target->type,
                                                                      &run->input_values[place]));
}

TRITONSERVER_Error *batch_io_bind(struct run *run)
{
    for (size_t i = 0; i < run->model->batch_input_count; i++) {
        TRITONSERVER_Error *err = bind_one(run, &run->model->batch_inputs[i], run->input_count + i);
        if (err)
            return err;
    }
    return NULL;
}

TRITONSERVER_Error *batch_io_shape(const struct run *run, const struct model_tensor *output,
                                   uint32_t item, int64_t *ret_shape, size_t *ret_rank,
                                   size_t *ret_count)
{
    const struct binput *input;
    struct binput_share share = {0};
    TRITONSERVER_Error *err = input_find(run, output->divided_by, &input);
    if (err)
        return err;
    binput_share(run->batch, input, item, &share);
    err = bcomputed_part(run->batch, output->name, output->served_dims, output->served_rank, input,
                         &share, ret_shape, ret_rank);
    *ret_count = 1;
    for (size_t i = 0; !err && i < *ret_rank; i++)
        if (__builtin_mul_overflow(*ret_count, (size_t)ret_shape[i], ret_count))
            err =
                berr_new(TRITONSERVER_ERROR_INVALID_ARG, "output '%s' is too large", output->name);
    return err;
}
