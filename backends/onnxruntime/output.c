#include "output.h"

#include <string.h>

#include "../common/berr.h"
#include "batch_io.h"

/* The alignment that ONNX Runtime needs for results. */
enum { OUTPUT_ALIGN = 16 };

struct output {
    struct model_tensor *tensor;
    bool *wanted; /* per item */
    bool foreseen;
    bool bound; /* foreseen, and ONNX Runtime writes directly into `buffer` */
    void *buffer;
    uint64_t size;
};

/* The actual shape and data of an output. */
struct result {
    size_t rank;
    int64_t shape[MODEL_MAX_DIMS];
    size_t elements;
    void *data; /* not for strings */
};

/* The destination of a result: an output of a response, or a state. */
struct sink {
    TRITONBACKEND_State *state;
    char *buffer;
};

static struct output *find_run_output(struct run *run, const char *name)
{
    for (size_t i = 0; i < run->output_count; i++)
        if (strcmp(run->outputs[i].tensor->name, name) == 0)
            return &run->outputs[i];
    return NULL;
}

static TRITONSERVER_Error *onnxruntime_output_mark_wanted(struct run *run, uint32_t index)
{
    TRITONBACKEND_Request *request = run->items[index].request;
    uint32_t count = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(request, &count);
    for (uint32_t i = 0; i < count && !err; i++) {
        const char *name;
        err = TRITONBACKEND_RequestOutputName(request, i, &name);
        struct output *output = err ? NULL : find_run_output(run, name);
        if (output && output->tensor->served)
            output->wanted[index] = true;
        else if (!err)
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "model '%s' has no output '%s'",
                           run->model->name, name);
    }
    return err;
}

static bool wanted_by_any(const struct run *run, const struct output *output)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (output->wanted[i])
            return true;
    return output->tensor->is_state;
}

TRITONSERVER_Error *output_select(struct run *run)
{
    const struct model *model = run->model;
    struct scratch *scratch = &run->instance->scratch;
    run->outputs = scratch_array(scratch, model->output_count, sizeof *run->outputs);
    run->output_names = scratch_array(scratch, model->output_count, sizeof *run->output_names);
    run->output_values = scratch_array(scratch, model->output_count, sizeof(OrtValue *));
    bool *wanted = scratch_array(scratch, model->output_count * run->count, sizeof *wanted);
    if (!run->outputs || !run->output_names || !run->output_values || !wanted)
        return berr_no_memory();
    for (size_t i = 0; i < model->output_count; i++)
        run->outputs[i] =
            (struct output){.tensor = &model->outputs[i], .wanted = wanted + i * run->count};
    run->output_count = model->output_count;
    for (uint32_t i = 0; i < run->count; i++)
        if (!run->items[i].err)
            run_fail(&run->items[i], onnxruntime_output_mark_wanted(run, i));

    size_t kept = 0;
    for (size_t i = 0; i < model->output_count; i++)
        if (wanted_by_any(run, &run->outputs[i])) {
            run->output_names[kept] = run->outputs[i].tensor->name;
            run->outputs[kept++] = run->outputs[i];
        }
    run->output_count = kept;
    return NULL;
}

static TRITONSERVER_Error *response_buffer(TRITONBACKEND_Response *response,
                                           const struct model_tensor *tensor, const int64_t *shape,
                                           size_t rank, uint64_t size, void **ret_buffer)
{
    TRITONBACKEND_Output *output;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = 0;
    *ret_buffer = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(response, &output, tensor->name,
                                                           tensor->datatype, shape, (uint32_t)rank);
    if (!err)
        err = TRITONBACKEND_OutputBuffer(output, ret_buffer, size, &memory_type, &memory_type_id);
    if (!err && memory_type == TRITONSERVER_MEMORY_GPU)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to create CPU output buffer");
    if (!err && size && !*ret_buffer)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' got no buffer", tensor->name);
    return err;
}

/* The shape that the model declares for this batch, if no dimension is open. */
static bool onnxruntime_output_promised(const struct run *run, const struct model_tensor *tensor,
                                        int64_t *shape, uint64_t *ret_size)
{
    if (tensor->datatype == TRITONSERVER_TYPE_BYTES || tensor->is_state || tensor->divided_by)
        return false;
    *ret_size = TRITONSERVER_DataTypeByteSize(tensor->datatype);
    for (size_t i = 0; i < tensor->rank; i++) {
        bool batch = i == 0 && run->model->max_batch_size > 0;
        shape[i] = batch ? run->rows : tensor->dims[i];
        if (shape[i] < 0 || __builtin_mul_overflow(*ret_size, (uint64_t)shape[i], ret_size))
            return false;
    }
    return true;
}

static TRITONSERVER_Error *foresee_one(struct run *run, size_t index, const struct run_item *item)
{
    struct output *output = &run->outputs[index];
    const struct model_tensor *tensor = output->tensor;
    const struct model *model = run->model;
    int64_t shape[MODEL_MAX_DIMS];
    if (atomic_load_explicit(&tensor->promise, memory_order_relaxed) != PROMISE_KEPT ||
        !onnxruntime_output_promised(run, tensor, shape, &output->size))
        return NULL;
    bool scalar = tensor->rank == 0;
    TRITONSERVER_Error *err =
        response_buffer(item->response, tensor, scalar ? tensor->served_dims : shape,
                        scalar ? tensor->served_rank : tensor->rank, output->size, &output->buffer);
    output->foreseen = true;
    if (err || output->size == 0 || (uintptr_t)output->buffer % OUTPUT_ALIGN != 0)
        return err;
    output->bound = true;
    return ort_err(model->api, model->api->CreateTensorWithDataAsOrtValue(
                                   model->ort->cpu, output->buffer, output->size, shape,
                                   tensor->rank, tensor->type, &run->output_values[index]));
}

/* A response has its outputs in the order in which they are made. So after an output with an
 * open shape, the others cannot be made earlier either. */
TRITONSERVER_Error *output_foresee(struct run *run)
{
    if (run->count != 1)
        return NULL;
    TRITONSERVER_Error *err = NULL;
    bool open = false;
    for (size_t i = 0; i < run->output_count && !err && !open; i++) {
        const struct output *output = &run->outputs[i];
        err = foresee_one(run, i, &run->items[0]);
        open = output->wanted[0] && !output->foreseen;
    }
    return err;
}

static TRITONSERVER_Error *onnxruntime_output_read_result(const struct model *model,
                                                          OrtValue *value, bool strings,
                                                          struct result *ret_result)
{
    const OrtApi *api = model->api;
    OrtTensorTypeAndShapeInfo *info = NULL;
    OrtStatus *status = api->GetTensorTypeAndShape(value, &info);
    if (!status)
        status = api->GetDimensionsCount(info, &ret_result->rank);
    TRITONSERVER_Error *err = NULL;
    if (!status && ret_result->rank > MODEL_MAX_DIMS)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "an output of model '%s' has more than %d dimensions", model->name,
                       MODEL_MAX_DIMS);
    if (!status && !err)
        status = api->GetDimensions(info, ret_result->shape, ret_result->rank);
    if (!status && !err)
        status = api->GetTensorShapeElementCount(info, &ret_result->elements);
    if (!status && !err && !strings)
        status = api->GetTensorMutableData(value, &ret_result->data);
    if (info)
        api->ReleaseTensorTypeAndShapeInfo(info);
    return err ? err : ort_err(api, status);
}

static bool keeps_promise(const struct run *run, const struct model_tensor *tensor,
                          const struct result *result)
{
    int64_t shape[MODEL_MAX_DIMS];
    uint64_t size;
    return onnxruntime_output_promised(run, tensor, shape, &size) && result->rank == tensor->rank &&
           memcmp(shape, result->shape, result->rank * sizeof *shape) == 0;
}

bool output_as_foreseen(const struct run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        const struct output *output = &run->outputs[i];
        if (!output->foreseen || output->bound)
            continue;
        struct result result = {0};
        TRITONSERVER_Error *err =
            onnxruntime_output_read_result(run->model, run->output_values[i], false, &result);
        bool same = !err && keeps_promise(run, output->tensor, &result);
        berr_drop(err);
        if (!same)
            return false;
    }
    return true;
}

/* Notes whether a result has the declared shape. If it once had another shape, that stays noted. */
static void onnxruntime_output_learn(const struct run *run, struct model_tensor *tensor,
                                     const struct result *result)
{
    int known = atomic_load_explicit(&tensor->promise, memory_order_relaxed);
    int seen = keeps_promise(run, tensor, result) ? PROMISE_KEPT : PROMISE_BROKEN;
    if (known != PROMISE_BROKEN && known != seen)
        atomic_store_explicit(&tensor->promise, seen, memory_order_relaxed);
}

bool output_take_back(struct run *run)
{
    bool any = false;
    for (size_t i = 0; i < run->output_count; i++)
        any = any || run->outputs[i].foreseen;
    if (!any)
        return false;
    struct run_item *item = &run->items[0];
    TRITONBACKEND_Response *fresh;
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&fresh, item->request);
    if (err) {
        berr_drop(err);
        return false;
    }
    berr_log(TRITONBACKEND_ResponseDelete(item->response), "failed to delete a response");
    item->response = fresh;
    output_release(run);
    for (size_t i = 0; i < run->output_count; i++) {
        run->output_values[i] = NULL;
        run->outputs[i].foreseen = run->outputs[i].bound = false;
    }
    return true;
}

static TRITONSERVER_Error *open_sink(const struct run_item *item, const struct model_tensor *tensor,
                                     const struct result *result, uint64_t size, bool as_state,
                                     struct sink *ret_sink)
{
    void *buffer = NULL;
    TRITONSERVER_Error *err;
    ret_sink->state = NULL;
    if (as_state) {
        TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
        int64_t memory_type_id = 0;
        err = TRITONBACKEND_StateNew(&ret_sink->state, item->request, tensor->name,
                                     tensor->datatype, result->shape, (uint32_t)result->rank);
        if (!err)
            err = TRITONBACKEND_StateBuffer(ret_sink->state, &buffer, size, &memory_type,
                                            &memory_type_id);
        if (!err && memory_type == TRITONSERVER_MEMORY_GPU)
            err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to create CPU state buffer");
    } else {
        bool scalar = result->rank == 0;
        err = response_buffer(item->response, tensor, scalar ? tensor->served_dims : result->shape,
                              scalar ? tensor->served_rank : result->rank, size, &buffer);
    }
    ret_sink->buffer = buffer;
    return err;
}

/* Writes `count` strings from element `first` on, each after its length. */
static TRITONSERVER_Error *
onnxruntime_output_write_strings(const struct run *run, const struct run_item *item, size_t index,
                                 const struct result *result, size_t first, size_t count,
                                 bool as_state)
{
    const OrtApi *api = run->model->api;
    const OrtValue *value = run->output_values[index];
    uint64_t size = 0;
    OrtStatus *status = NULL;
    for (size_t i = 0; i < count && !status; i++) {
        size_t length = 0;
        status = api->GetStringTensorElementLength(value, first + i, &length);
        size += sizeof(uint32_t) + length;
        if (!status && length > UINT32_MAX)
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "a string of output '%s' is too long",
                            run->output_names[index]);
    }
    if (status)
        return ort_err(api, status);
    struct sink sink = {0};
    TRITONSERVER_Error *err =
        open_sink(item, run->outputs[index].tensor, result, size, as_state, &sink);
    char *at = sink.buffer;
    for (size_t i = 0; i < count && !err && !status; i++) {
        size_t length = 0;
        status = api->GetStringTensorElementLength(value, first + i, &length);
        if (!status)
            status = api->GetStringTensorElement(value, length, first + i, at + sizeof(uint32_t));
        uint32_t prefix = (uint32_t)length;
        memcpy(at, &prefix, sizeof prefix);
        at += sizeof prefix + length;
    }
    if (!err)
        err = ort_err(api, status);
    return err || !as_state ? err : TRITONBACKEND_StateUpdate(sink.state);
}

static TRITONSERVER_Error *write_plain(const struct run *run, const struct run_item *item,
                                       size_t index, const struct result *result, size_t first,
                                       size_t count, bool as_state)
{
    const struct model_tensor *tensor = run->outputs[index].tensor;
    size_t element = TRITONSERVER_DataTypeByteSize(tensor->datatype);
    struct sink sink = {0};
    TRITONSERVER_Error *err = open_sink(item, tensor, result, count * element, as_state, &sink);
    if (err)
        return err;
    if (count)
        memcpy(sink.buffer, (const char *)result->data + first * element, count * element);
    return as_state ? TRITONBACKEND_StateUpdate(sink.state) : NULL;
}

static TRITONSERVER_Error *check_rows(const struct run *run, const char *name,
                                      const struct result *result)
{
    if (run->model->max_batch_size == 0)
        return NULL;
    int64_t found = result->rank ? result->shape[0] : 0;
    if (found == run->rows)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "failed to split the output tensor '%s' in responses: expected batch size of "
                    "%lld in model output, got %lld",
                    name, (long long)run->rows, (long long)found);
}

/* Gives each item as many elements of one output as the shape of its input says, one item after
 * the other. */
static TRITONSERVER_Error *divide(struct run *run, size_t index)
{
    const struct output *output = &run->outputs[index];
    bool strings = output->tensor->datatype == TRITONSERVER_TYPE_BYTES;
    struct result result = {0};
    TRITONSERVER_Error *err =
        onnxruntime_output_read_result(run->model, run->output_values[index], strings, &result);
    size_t first = 0;
    for (uint32_t i = 0; i < run->count && !err; i++) {
        struct run_item *item = &run->items[i];
        struct result share = {.data = result.data};
        size_t count = 0;
        if (!item->in_batch)
            continue;
        err = batch_io_shape(run, output->tensor, i, share.shape, &share.rank, &count);
        if (!err && count > result.elements - first)
            err = berr_new(TRITONSERVER_ERROR_INTERNAL,
                           "output '%s' has %zu elements, fewer than the shapes of input '%s' ask "
                           "for",
                           output->tensor->name, result.elements, output->tensor->divided_by->name);
        if (!err && !item->err && output->wanted[i])
            run_fail(item, strings ? onnxruntime_output_write_strings(run, item, index, &share,
                                                                      first, count, false)
                                   : write_plain(run, item, index, &share, first, count, false));
        first += count;
    }
    return err;
}

/* Gives each item its rows of an output. */
static TRITONSERVER_Error *scatter(struct run *run, size_t index)
{
    const struct output *output = &run->outputs[index];
    bool strings = output->tensor->datatype == TRITONSERVER_TYPE_BYTES;
    bool batches = run->model->max_batch_size > 0;
    struct result result = {0};
    TRITONSERVER_Error *err =
        onnxruntime_output_read_result(run->model, run->output_values[index], strings, &result);
    if (!err) {
        onnxruntime_output_learn(run, output->tensor, &result);
        err = check_rows(run, output->tensor->name, &result);
    }
    if (err)
        return err;
    size_t row = run->rows > 0 ? result.elements / (size_t)run->rows : 0;
    size_t first = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        struct run_item *item = &run->items[i];
        if (!item->in_batch)
            continue;
        size_t count = row * (size_t)item->rows;
        if (batches)
            result.shape[0] = item->rows;
        for (int as_state = 0; as_state < 2 && !item->err; as_state++)
            if (as_state ? output->tensor->is_state : output->wanted[i])
                run_fail(item,
                         strings ? onnxruntime_output_write_strings(run, item, index, &result,
                                                                    first, count, as_state)
                                 : write_plain(run, item, index, &result, first, count, as_state));
        first += count;
    }
    return NULL;
}

TRITONSERVER_Error *output_write(struct run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        const struct output *output = &run->outputs[i];
        TRITONSERVER_Error *err = NULL;
        if (output->foreseen && !output->bound && output->size) {
            struct result result = {0};
            err = onnxruntime_output_read_result(run->model, run->output_values[i], false, &result);
            if (!err && result.data)
                memcpy(output->buffer, result.data, output->size);
        } else if (!output->foreseen) {
            err = output->tensor->divided_by ? divide(run, i) : scatter(run, i);
        }
        if (err)
            return err;
    }
    return NULL;
}

void output_release(struct run *run)
{
    for (size_t i = 0; i < run->output_count; i++)
        if (run->output_values[i])
            run->model->api->ReleaseValue(run->output_values[i]);
}
