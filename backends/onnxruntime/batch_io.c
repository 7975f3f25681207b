#include "batch_io.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "input.h"

enum batch_kind {
    ELEMENT_COUNT,
    ACCUMULATED,
    ACCUMULATED_WITH_ZERO,
    MAX_ELEMENT_COUNT_AS_SHAPE,
    ITEM_SHAPE,
    ITEM_SHAPE_FLATTEN,
    KIND_COUNT,
};

static const char *const kind_names[KIND_COUNT] = {
    [ELEMENT_COUNT] = "BATCH_ELEMENT_COUNT",
    [ACCUMULATED] = "BATCH_ACCUMULATED_ELEMENT_COUNT",
    [ACCUMULATED_WITH_ZERO] = "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    [MAX_ELEMENT_COUNT_AS_SHAPE] = "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
    [ITEM_SHAPE] = "BATCH_ITEM_SHAPE",
    [ITEM_SHAPE_FLATTEN] = "BATCH_ITEM_SHAPE_FLATTEN",
};

/* A computed input. */
struct batch_input {
    enum batch_kind kind;
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

static TRITONSERVER_Error *onnxruntime_batch_io_read_kind(const struct model *model,
                                                          yyjson_val *entry, enum batch_kind *ret)
{
    const char *name = yyjson_get_str(yyjson_obj_get(entry, "kind"));
    for (int kind = 0; name && kind < KIND_COUNT; kind++)
        if (strcmp(name, kind_names[kind]) == 0) {
            *ret = (enum batch_kind)kind;
            return NULL;
        }
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', unexpected batch input kind '%s'", model->name,
                    name ? name : "");
}

static TRITONSERVER_Error *read_target(struct model *model, yyjson_val *entry, const char *name)
{
    struct batch_input *to = &model->batch_inputs[model->batch_input_count];
    struct model_tensor *source = NULL, *target = NULL;
    const char *type = yyjson_get_str(yyjson_obj_get(entry, "data_type"));
    TRITONSERVER_Error *err = onnxruntime_batch_io_read_kind(model, entry, &to->kind);
    if (!err)
        err = onnxruntime_batch_io_find_input(
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
            if (output)
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

/* The shape of a computed input. */
static TRITONSERVER_Error *onnxruntime_batch_io_shape(const struct run *run,
                                                      const struct batch_input *b, int64_t shape[2],
                                                      size_t *ret_rank)
{
    shape[0] = b->kind == ACCUMULATED_WITH_ZERO ? run->batch_size + 1 : 0;
    *ret_rank = b->kind == ITEM_SHAPE ? 2 : 1;
    for (uint32_t i = 0; i < run->count; i++) {
        struct input_view view;
        if (!run->items[i].in_batch)
            continue;
        TRITONSERVER_Error *err = input_look(run, b->source, i, &view);
        if (err)
            return err;
        int64_t inner = view.rank ? view.rank - 1 : 0;
        int64_t rows = view.rank ? view.shape[0] : 0;
        switch (b->kind) {
        case ELEMENT_COUNT:
        case ACCUMULATED:
            shape[0]++;
            break;
        case MAX_ELEMENT_COUNT_AS_SHAPE:
            shape[0] = (int64_t)view.elements > shape[0] ? (int64_t)view.elements : shape[0];
            break;
        case ITEM_SHAPE:
            shape[0] += rows;
            shape[1] = inner;
            break;
        case ITEM_SHAPE_FLATTEN:
            shape[0] += rows * inner;
            break;
        case ACCUMULATED_WITH_ZERO:
        case KIND_COUNT:
            break;
        }
    }
    return NULL;
}

/* The place for the values, as INT32 or FP32. */
struct filler {
    bool is_float;
    char *at;
    char *end;
};

static void onnxruntime_batch_io_put(struct filler *f, uint64_t value)
{
    float as_float = (float)value;
    int32_t as_int = value > INT32_MAX ? INT32_MAX : (int32_t)value;
    if (f->at + sizeof as_int > f->end)
        return;
    memcpy(f->at, f->is_float ? (const void *)&as_float : (const void *)&as_int, sizeof as_int);
    f->at += sizeof as_int;
}

/* Writes the contents. A shape without contents stays zero. */
static TRITONSERVER_Error *onnxruntime_batch_io_fill(const struct run *run,
                                                     const struct batch_input *b, struct filler *f)
{
    uint64_t sum = 0;
    if (b->kind == ACCUMULATED_WITH_ZERO)
        onnxruntime_batch_io_put(f, 0);
    for (uint32_t i = 0; i < run->count; i++) {
        struct input_view view;
        if (!run->items[i].in_batch)
            continue;
        TRITONSERVER_Error *err = input_look(run, b->source, i, &view);
        if (err)
            return err;
        sum += view.elements;
        if (b->kind == ELEMENT_COUNT)
            onnxruntime_batch_io_put(f, view.elements);
        else if (b->kind == ACCUMULATED || b->kind == ACCUMULATED_WITH_ZERO)
            onnxruntime_batch_io_put(f, sum);
        for (int64_t row = 0; (b->kind == ITEM_SHAPE || b->kind == ITEM_SHAPE_FLATTEN) &&
                              view.rank && row < view.shape[0];
             row++)
            for (uint32_t d = 1; d < view.rank; d++)
                onnxruntime_batch_io_put(f, (uint64_t)view.shape[d]);
    }
    return NULL;
}

static TRITONSERVER_Error *bind_one(struct run *run, const struct batch_input *b, size_t place)
{
    const struct model *model = run->model;
    int64_t shape[2];
    size_t rank;
    TRITONSERVER_Error *err = onnxruntime_batch_io_shape(run, b, shape, &rank);
    if (err)
        return err;
    uint64_t size = sizeof(int32_t);
    for (size_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(size, (uint64_t)shape[i], &size))
            return berr_no_memory();
    char *data = scratch_take(&run->instance->scratch, size);
    if (!data)
        return berr_no_memory();
    memset(data, 0, size);
    struct filler f = {
        .is_float = b->target->datatype == TRITONSERVER_TYPE_FP32, .at = data, .end = data + size};
    err = onnxruntime_batch_io_fill(run, b, &f);
    if (err)
        return err;
    run->input_names[place] = b->target->name;
    return ort_err(model->api, model->api->CreateTensorWithDataAsOrtValue(
                                   model->ort->cpu, data, size, shape, rank, b->target->type,
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
    struct input_view view;
    TRITONSERVER_Error *err = input_look(run, output->divided_by, item, &view);
    if (err)
        return err;
    size_t first = run->model->max_batch_size > 0 ? 1 : 0;
    *ret_rank = output->served_rank + first;
    *ret_count = 1;
    for (size_t i = 0; i < *ret_rank; i++) {
        int64_t dim = i < first ? -1 : output->served_dims[i - first];
        if (dim == -1 && i >= view.rank)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "output '%s' has the shape of input '%s', which has only %u dimensions",
                            output->name, output->divided_by->name, view.rank);
        ret_shape[i] = dim == -1 ? view.shape[i] : dim;
        if (__builtin_mul_overflow(*ret_count, (size_t)ret_shape[i], ret_count))
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "output '%s' is too large",
                            output->name);
    }
    return NULL;
}
