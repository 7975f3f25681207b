#include "output.h"

#include <string.h>

#include "../common/bcomputed.h"
#include "../common/berr.h"
#include "../common/boutput.h"
#include "batch_io.h"
#include "input.h"

/* The alignment that ONNX Runtime needs for results. */
enum { OUTPUT_ALIGN = 16 };

struct output {
    struct model_tensor *tensor;
    const struct boutput *told; /* what the requests want of it */
    bool foreseen;
    bool bound; /* foreseen, and ONNX Runtime writes directly into `buffer` */
    void *buffer;
    uint64_t size;
};

/* The actual shape and data of an output. */
struct result {
    size_t rank;
    int64_t shape[BRUN_MAX_DIMS];
    size_t elements;
    void *data; /* not for strings */
};

/* The destination of a result: an output of a response, or a state. */
struct sink {
    TRITONBACKEND_State *state;
    void *buffer;
};

TRITONSERVER_Error *output_select(struct run *run)
{
    const struct model *model = run->model;
    struct scratch *scratch = &run->batch->place->scratch;
    struct boutput *told = scratch_array(scratch, model->output_count, sizeof *told);
    run->outputs = scratch_array(scratch, model->output_count, sizeof *run->outputs);
    run->output_names = scratch_array(scratch, model->output_count, sizeof *run->output_names);
    run->output_values = scratch_array(scratch, model->output_count, sizeof(OrtValue *));
    if (!told || !run->outputs || !run->output_names || !run->output_values)
        return berr_no_memory();
    for (size_t i = 0; i < model->output_count; i++) {
        const struct model_tensor *tensor = &model->outputs[i];
        told[i] = (struct boutput){
            .name = tensor->name, .datatype = tensor->datatype, .served = tensor->served};
    }
    TRITONSERVER_Error *err = boutput_select(run->batch, told, model->output_count);
    if (err)
        return err;
    for (size_t i = 0; i < model->output_count; i++) {
        struct model_tensor *tensor = &model->outputs[i];
        if (!told[i].wanted && !tensor->is_state)
            continue;
        run->output_names[run->output_count] = tensor->name;
        run->outputs[run->output_count++] = (struct output){.tensor = tensor, .told = &told[i]};
    }
    return NULL;
}

bool output_is_text(const struct run *run, size_t index)
{
    return run->outputs[index].tensor->datatype == TRITONSERVER_TYPE_BYTES;
}

/* The shape that the model declares for this batch, if no dimension is open. */
static bool onnxruntime_output_promised(const struct run *run, const struct model_tensor *tensor,
                                        int64_t *shape, uint64_t *ret_size)
{
    if (tensor->datatype == TRITONSERVER_TYPE_BYTES || tensor->is_state || tensor->divided_by)
        return false;
    memcpy(shape, tensor->dims, tensor->rank * sizeof *shape);
    if (run->model->max_batch_size > 0 && tensor->rank)
        shape[0] = run->batch->rows;
    return brun_bytes(tensor->datatype, shape, tensor->rank, ret_size);
}

static TRITONSERVER_Error *foresee_one(struct run *run, size_t index, const struct brun_item *item)
{
    struct output *output = &run->outputs[index];
    const struct model_tensor *tensor = output->tensor;
    const struct ort *ort = run_ort(run);
    int64_t shape[BRUN_MAX_DIMS];
    if (atomic_load_explicit(&tensor->promise, memory_order_relaxed) != PROMISE_KEPT ||
        !onnxruntime_output_promised(run, tensor, shape, &output->size))
        return NULL;
    bool scalar = tensor->rank == 0;
    TRITONSERVER_Error *err = boutput_buffer(
        item, output->told, scalar ? tensor->served_dims : shape,
        scalar ? tensor->served_rank : tensor->rank, output->size, NULL, &output->buffer);
    output->foreseen = true;
    if (err || output->size == 0 || (uintptr_t)output->buffer % OUTPUT_ALIGN != 0 ||
        binput_meets(run->inputs, run->input_count, output->buffer, output->size))
        return err;
    output->bound = true;
    return ort_err(ort->api, ort->api->CreateTensorWithDataAsOrtValue(
                                 ort->cpu, output->buffer, output->size, shape, tensor->rank,
                                 tensor->type, &run->output_values[index]));
}

/* A response has its outputs in the order in which they are made. So after an output with an
 * open shape, the others cannot be made earlier either. */
TRITONSERVER_Error *output_foresee(struct run *run)
{
    if (run->batch->count != 1 || run->instance->session->cuda)
        return NULL;
    TRITONSERVER_Error *err = NULL;
    bool open = false;
    for (size_t i = 0; i < run->output_count && !err && !open; i++) {
        const struct output *output = &run->outputs[i];
        err = foresee_one(run, i, &run->batch->items[0]);
        open = output->told->wanted_by[0] && !output->foreseen;
    }
    return err;
}

static TRITONSERVER_Error *onnxruntime_output_read_result(const struct run *run, OrtValue *value,
                                                          bool strings, struct result *ret_result)
{
    const OrtApi *api = run_ort(run)->api;
    OrtTensorTypeAndShapeInfo *info = NULL;
    OrtStatus *status = api->GetTensorTypeAndShape(value, &info);
    if (!status)
        status = api->GetDimensionsCount(info, &ret_result->rank);
    TRITONSERVER_Error *err = NULL;
    if (!status && ret_result->rank > BRUN_MAX_DIMS)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "an output of model '%s' has more than %d dimensions", run->model->name,
                       BRUN_MAX_DIMS);
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
    int64_t shape[BRUN_MAX_DIMS];
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
            onnxruntime_output_read_result(run, run->output_values[i], false, &result);
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
    struct brun_item *item = &run->batch->items[0];
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

/* cuda  as boutput_buffer; a state is on the host */
static TRITONSERVER_Error *open_sink(const struct brun_item *item, const struct output *output,
                                     const struct result *result, uint64_t size, bool as_state,
                                     const struct bcuda *cuda, struct sink *ret_sink)
{
    const struct model_tensor *tensor = output->tensor;
    bool scalar = result->rank == 0;
    ret_sink->state = NULL;
    if (as_state)
        return boutput_state(item, output->told, result->shape, result->rank, size,
                             &ret_sink->state, &ret_sink->buffer);
    return boutput_buffer(item, output->told, scalar ? tensor->served_dims : result->shape,
                          scalar ? tensor->served_rank : result->rank, size, cuda,
                          &ret_sink->buffer);
}

/* Writes `count` strings from element `first` on, each after its length. */
static TRITONSERVER_Error *
onnxruntime_output_write_strings(const struct run *run, const struct brun_item *item, size_t index,
                                 const struct result *result, size_t first, size_t count,
                                 bool as_state)
{
    const OrtApi *api = run_ort(run)->api;
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
        open_sink(item, &run->outputs[index], result, size, as_state, NULL, &sink);
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

static TRITONSERVER_Error *write_plain(const struct run *run, const struct brun_item *item,
                                       size_t index, const struct result *result, size_t first,
                                       size_t count, bool as_state)
{
    const struct output *output = &run->outputs[index];
    struct bcuda *cuda = run->instance->session->cuda;
    size_t element = TRITONSERVER_DataTypeByteSize(output->tensor->datatype);
    struct sink sink = {0};
    TRITONSERVER_Error *err =
        open_sink(item, output, result, count * element, as_state, cuda, &sink);
    if (!err)
        err = bcuda_put(cuda, sink.buffer, (const char *)result->data + first * element,
                        count * element);
    if (!err && as_state && cuda) /* what the next request is given has to be there */
        err = bcuda_wait(cuda);
    return err || !as_state ? err : TRITONBACKEND_StateUpdate(sink.state);
}

static TRITONSERVER_Error *check_rows(const struct run *run, const char *name,
                                      const struct result *result)
{
    if (run->model->max_batch_size == 0)
        return NULL;
    int64_t found = result->rank ? result->shape[0] : 0;
    if (found == run->batch->rows)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "failed to split the output tensor '%s' in responses: expected batch size of "
                    "%lld in model output, got %lld",
                    name, (long long)run->batch->rows, (long long)found);
}

/* Refuses a result that has more or fewer elements than the shapes of its input ask for. */
static TRITONSERVER_Error *check_elements(const struct run *run, const struct model_tensor *tensor,
                                          const struct result *result)
{
    const struct binput *input;
    uint64_t sum;
    TRITONSERVER_Error *err = input_find(run, tensor->divided_by, &input);
    if (!err)
        err = bcomputed_elements(run->batch, tensor->name, tensor->served_dims, tensor->served_rank,
                                 input, &sum);
    if (err || sum == result->elements)
        return err;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "output '%s' has %zu elements, the shapes of input '%s' ask for %llu",
                    tensor->name, result->elements, input->name, (unsigned long long)sum);
}

/* Gives each item as many elements of one output as the shape of its input says, one item after
 * the other. */
static TRITONSERVER_Error *divide(struct run *run, size_t index)
{
    const struct output *output = &run->outputs[index];
    bool strings = output->tensor->datatype == TRITONSERVER_TYPE_BYTES;
    struct result result = {0};
    TRITONSERVER_Error *err =
        onnxruntime_output_read_result(run, run->output_values[index], strings, &result);
    if (!err)
        err = check_elements(run, output->tensor, &result);
    size_t first = 0;
    for (uint32_t i = 0; i < run->batch->count && !err; i++) {
        struct brun_item *item = &run->batch->items[i];
        struct result share = {.data = result.data};
        size_t count = 0;
        if (!item->in_batch)
            continue;
        err = batch_io_shape(run, output->tensor, i, share.shape, &share.rank, &count);
        if (!err && !item->err && output->told->wanted_by[i])
            brun_fail(item, strings ? onnxruntime_output_write_strings(run, item, index, &share,
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
        onnxruntime_output_read_result(run, run->output_values[index], strings, &result);
    if (!err)
        err = check_rows(run, output->tensor->name, &result);
    if (err)
        return err;
    onnxruntime_output_learn(run, output->tensor, &result);
    size_t row = run->batch->rows > 0 ? result.elements / (size_t)run->batch->rows : 0;
    size_t first = 0;
    for (uint32_t i = 0; i < run->batch->count; i++) {
        struct brun_item *item = &run->batch->items[i];
        if (!item->in_batch)
            continue;
        size_t count = row * (size_t)item->rows;
        if (batches)
            result.shape[0] = item->rows;
        for (int as_state = 0; as_state < 2 && !item->err; as_state++)
            if (as_state ? output->tensor->is_state : output->told->wanted_by[i])
                brun_fail(item,
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
            err = onnxruntime_output_read_result(run, run->output_values[i], false, &result);
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
            run_ort(run)->api->ReleaseValue(run->output_values[i]);
}
