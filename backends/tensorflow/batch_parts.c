#include "batch_parts.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"

static yyjson_val *computed_inputs(const struct model *model)
{
    return yyjson_obj_get(model->config, "batch_input");
}

static const char *source_of(yyjson_val *entry)
{
    return yyjson_get_str(yyjson_arr_get_first(yyjson_obj_get(entry, "source_input")));
}

size_t batch_parts_computed(const struct model *model)
{
    size_t index, count, sum = 0;
    yyjson_val *entry;
    yyjson_arr_foreach(computed_inputs(model), index, count, entry)
    {
        sum += yyjson_arr_size(yyjson_obj_get(entry, "target_name"));
    }
    return sum;
}

bool batch_parts_names(const struct model *model, const char *name)
{
    size_t index, count, i, targets;
    yyjson_val *entry, *target;
    yyjson_arr_foreach(computed_inputs(model), index, count, entry)
    {
        yyjson_arr_foreach(yyjson_obj_get(entry, "target_name"), i, targets, target)
        {
            if (yyjson_equals_str(target, name))
                return true;
        }
    }
    return false;
}

static TRITONSERVER_Error *tensorflow_batch_parts_no_such_tensor(const struct model *model,
                                                                 const char *list, const char *name)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', %s names '%s', which the model does not have",
                    model->name, list, name ? name : "");
}

static TRITONSERVER_Error *mark_computed(const struct model *model, yyjson_val *entry,
                                         const char *name)
{
    struct model_tensor *tensor = model_find(&model->inputs, name);
    TRITONSERVER_DataType datatype =
        bconfig_datatype(yyjson_get_str(yyjson_obj_get(entry, "data_type")));
    if (!tensor)
        return tensorflow_batch_parts_no_such_tensor(model, "batch_input", name);
    tensor->computed = bcomputed_kind_of(entry);
    if (tensor->computed == BCOMPUTED_NONE)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', the batch input '%s' is of no known kind",
                        model->name, name);
    bool fits = datatype == TRITONSERVER_TYPE_INT32 || datatype == TRITONSERVER_TYPE_FP32;
    if (fits && datatype == tensor->datatype)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', the batch input '%s' has to be TYPE_INT32 or "
                    "TYPE_FP32 in the configuration and in the model alike",
                    model->name, name);
}

static TRITONSERVER_Error *mark_all_computed(const struct model *model)
{
    size_t index, count, i, targets;
    yyjson_val *entry, *target;
    TRITONSERVER_Error *err = NULL;
    yyjson_arr_foreach(computed_inputs(model), index, count, entry)
    {
        yyjson_arr_foreach(yyjson_obj_get(entry, "target_name"), i, targets, target)
        {
            if (!err)
                err = mark_computed(model, entry, yyjson_get_str(target));
        }
    }
    return err;
}

static int computed_last(const void *left, const void *right)
{
    const struct model_tensor *a = left, *b = right;
    return (a->computed != BCOMPUTED_NONE) - (b->computed != BCOMPUTED_NONE);
}

/* Finds the source of a computed input or divided output: an input of requests. */
static TRITONSERVER_Error *tensorflow_batch_parts_find_source(const struct model *model,
                                                              const char *list, yyjson_val *entry,
                                                              size_t *ret_index)
{
    const char *name = source_of(entry);
    const struct model_tensor *tensor = model_find(&model->inputs, name);
    if (!tensor || tensor->computed != BCOMPUTED_NONE)
        return tensorflow_batch_parts_no_such_tensor(model, list, name);
    *ret_index = (size_t)(tensor - model->inputs.tensors);
    return NULL;
}

static TRITONSERVER_Error *link_inputs(const struct model *model)
{
    size_t index, count, i, targets, source = 0;
    yyjson_val *entry, *target;
    yyjson_arr_foreach(computed_inputs(model), index, count, entry)
    {
        TRITONSERVER_Error *err =
            tensorflow_batch_parts_find_source(model, "batch_input", entry, &source);
        if (err)
            return err;
        yyjson_arr_foreach(yyjson_obj_get(entry, "target_name"), i, targets, target)
        {
            model_find(&model->inputs, yyjson_get_str(target))->told_by = source;
        }
    }
    return NULL;
}

static TRITONSERVER_Error *link_outputs(const struct model *model)
{
    size_t index, count, i, targets, source = 0;
    yyjson_val *entry, *target;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "batch_output"), index, count, entry)
    {
        TRITONSERVER_Error *err =
            tensorflow_batch_parts_find_source(model, "batch_output", entry, &source);
        if (err)
            return err;
        yyjson_arr_foreach(yyjson_obj_get(entry, "target_name"), i, targets, target)
        {
            struct model_tensor *tensor = model_find(&model->outputs, yyjson_get_str(target));
            if (!tensor || tensor->datatype == TRITONSERVER_TYPE_BYTES)
                return tensorflow_batch_parts_no_such_tensor(model, "batch_output",
                                                             yyjson_get_str(target));
            tensor->is_divided = true;
            tensor->divided_by = source;
        }
    }
    return NULL;
}

static void tensorflow_batch_parts_mark_ragged(const struct model *model)
{
    size_t index, count;
    yyjson_val *entry;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "input"), index, count, entry)
    {
        struct model_tensor *tensor =
            model_find(&model->inputs, yyjson_get_str(yyjson_obj_get(entry, "name")));
        if (tensor)
            tensor->ragged = model->max_batch_size > 0 &&
                             yyjson_get_bool(yyjson_obj_get(entry, "allow_ragged_batch"));
    }
}

TRITONSERVER_Error *batch_parts_read(struct model *model)
{
    struct model_list *inputs = &model->inputs;
    TRITONSERVER_Error *err = mark_all_computed(model);
    if (err)
        return err;
    tensorflow_batch_parts_mark_ragged(model);
    qsort(inputs->tensors, inputs->count, sizeof *inputs->tensors, computed_last);
    while (model->given_count < inputs->count &&
           inputs->tensors[model->given_count].computed == BCOMPUTED_NONE)
        model->given_count++;
    err = link_inputs(model);
    return err ? err : link_outputs(model);
}

/* Finds the shape and size of the part of an item in the batch. */
static TRITONSERVER_Error *part_of_item(const struct brun *run, const struct model_tensor *tensor,
                                        const struct binput *by, uint32_t item,
                                        struct boutput_tensor *ret_part, uint64_t *ret_bytes)
{
    struct binput_share of = {0};
    binput_share(run, by, item, &of);
    TRITONSERVER_Error *err =
        bcomputed_part(run, tensor->name, tensor->served_dims, tensor->served_rank, by, &of,
                       ret_part->shape, &ret_part->rank);
    if (!err && !brun_bytes(tensor->datatype, ret_part->shape, ret_part->rank, ret_bytes))
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "output '%s' is too large", tensor->name);
    return err;
}

/* Refuses a result that has more or fewer elements than all parts together. */
static TRITONSERVER_Error *check_sum(const struct brun *run, const struct model_tensor *tensor,
                                     const struct binput *by, uint64_t bytes)
{
    uint64_t sum, found = bytes / TRITONSERVER_DataTypeByteSize(tensor->datatype);
    TRITONSERVER_Error *err =
        bcomputed_elements(run, tensor->name, tensor->served_dims, tensor->served_rank, by, &sum);
    if (err || sum == found)
        return err;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "failed to split the output tensor '%s' in responses: it has %llu elements, "
                    "the shapes of input '%s' ask for %llu",
                    tensor->name, (unsigned long long)found, by->name, (unsigned long long)sum);
}

TRITONSERVER_Error *batch_parts_divide(struct brun *run, const struct model_tensor *tensor,
                                       const struct boutput *output, const struct binput *by,
                                       const struct boutput_tensor *result)
{
    const char *data = result->data;
    uint64_t size = 0;
    brun_bytes(tensor->datatype, result->shape, result->rank, &size);
    TRITONSERVER_Error *err = check_sum(run, tensor, by, size);
    for (uint32_t i = 0; i < run->count && !err; i++) {
        struct brun_item *item = &run->items[i];
        struct boutput_tensor part;
        void *buffer = NULL;
        if (!item->in_batch)
            continue;
        err = part_of_item(run, tensor, by, i, &part, &size);
        if (!err && !item->err && output->wanted_by[i])
            brun_fail(item,
                      boutput_buffer(item, output, part.shape, part.rank, size, NULL, &buffer));
        if (buffer && size)
            memcpy(buffer, data, size);
        data += size;
    }
    return err;
}
