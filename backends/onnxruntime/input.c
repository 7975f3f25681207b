#include "input.h"

#include <string.h>

#include "../common/berr.h"

/* The alignment that kernels for GPUs and their libraries take for granted. */
enum { GPU_ALIGN = 16 };

/* Lists the inputs of the first request; a model's optional inputs may be missing. */
static TRITONSERVER_Error *list_inputs(struct run *run, TRITONBACKEND_Request *request)
{
    const struct model *model = run->model;
    struct scratch *scratch = &run->batch->place->scratch;
    uint32_t count = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputCount(request, &count);
    if (err)
        return err;
    run->input_tensors = scratch_array(scratch, count, sizeof *run->input_tensors);
    size_t all = count + model->batch_input_count;
    run->input_names = scratch_array(scratch, all, sizeof *run->input_names);
    run->input_values = scratch_array(scratch, all, sizeof(OrtValue *));
    run->inputs = scratch_array(scratch, count, sizeof *run->inputs);
    if (!run->input_tensors || !run->input_names || !run->input_values || !run->inputs)
        return berr_no_memory();
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        err = TRITONBACKEND_RequestInputName(request, i, &name);
        if (err)
            return err;
        const struct model_tensor *tensor = model_find(model->inputs, model->input_count, name);
        if (!tensor)
            return berr_new(TRITONSERVER_ERROR_INTERNAL,
                            "Failed to retrieve the ONNX input tensor info from '%s'.", name);
        run->input_tensors[i] = tensor;
        run->input_names[i] = tensor->name;
        run->inputs[i] = (struct binput){
            .name = tensor->name, .datatype = tensor->datatype, .ragged = tensor->ragged};
    }
    run->input_count = count;
    return NULL;
}

TRITONSERVER_Error *input_collect(struct run *run)
{
    const struct brun *batch = run->batch;
    uint32_t first = 0;
    while (first < batch->count && batch->items[first].err)
        first++;
    if (first == batch->count)
        return NULL;
    TRITONSERVER_Error *err = list_inputs(run, batch->items[first].request);
    return err ? err : binput_collect(run->batch, run->inputs, run->input_count);
}

static TRITONSERVER_Error *bind_scalar(struct run *run, size_t input)
{
    const struct ort *ort = run_ort(run);
    const struct model_tensor *tensor = run->input_tensors[input];
    OrtValue **value = &run->input_values[input];
    OrtAllocator *allocator;
    uint64_t size;
    char *to;
    /* ONNX Runtime's functions take a non-const pointer, but only read inputs. */
    union {
        const void *from;
        void *to;
    } bytes = {0};
    TRITONSERVER_Error *err = binput_value(run->batch, &run->inputs[input], &bytes.from, &size);
    if (err)
        return err;
    if (tensor->datatype != TRITONSERVER_TYPE_BYTES)
        return ort_err(ort->api, ort->api->CreateTensorWithDataAsOrtValue(
                                     ort->cpu, bytes.to, size, NULL, 0, tensor->type, value));
    size -= sizeof(uint32_t); /* its length */
    OrtStatus *status = ort->api->GetAllocatorWithDefaultOptions(&allocator);
    if (!status)
        status = ort->api->CreateTensorAsOrtValue(allocator, NULL, 0, tensor->type, value);
    if (!status)
        status = ort->api->GetResizedStringTensorElementBuffer(*value, 0, size, &to);
    if (!status)
        memcpy(to, (const char *)bytes.from + sizeof(uint32_t), size);
    return ort_err(ort->api, status);
}

static TRITONSERVER_Error *bind_plain(struct run *run, size_t input)
{
    const struct ort *ort = run_ort(run);
    const struct model_tensor *tensor = run->input_tensors[input];
    int64_t shape[BRUN_MAX_DIMS];
    uint64_t size = 0;
    /* ONNX Runtime's functions take a non-const pointer, but only read inputs. */
    union {
        const void *from;
        void *to;
    } bytes = {0};
    TRITONSERVER_Error *err =
        binput_data(run->batch, &run->inputs[input], SCRATCH_ALIGN, run->batch->rows, &bytes.from);
    if (err)
        return err;
    size_t rank = binput_shape(run->batch, &run->inputs[input], run->batch->rows, shape);
    brun_bytes(tensor->datatype, shape, rank, &size);
    return ort_err(ort->api, ort->api->CreateTensorWithDataAsOrtValue(ort->cpu, bytes.to, size,
                                                                      shape, rank, tensor->type,
                                                                      &run->input_values[input]));
}

/* ONNX Runtime's functions take a non-const pointer, but only read inputs. */
static TRITONSERVER_Error *bind_gpu_memory(struct run *run, size_t input, const void *data,
                                           uint64_t size, const int64_t *shape, size_t rank)
{
    const struct ort *ort = run_ort(run);
    union {
        const void *from;
        void *to;
    } bytes = {data};
    return ort_err(ort->api, ort->api->CreateTensorWithDataAsOrtValue(
                                 run->instance->session->memory, bytes.to, size, shape, rank,
                                 run->input_tensors[input]->type, &run->input_values[input]));
}

/* A tensor on the GPU: the request's own memory if it lies there in one piece and aligned,
 * otherwise a copy, which is queued on the stream that ONNX Runtime works on. */
static TRITONSERVER_Error *bind_on_gpu(struct run *run, size_t input)
{
    const OrtApi *api = run_ort(run)->api;
    const struct binput *of = &run->inputs[input];
    int64_t shape[BRUN_MAX_DIMS];
    size_t rank = binput_shape(run->batch, &run->inputs[input], run->batch->rows, shape);
    uint64_t size = 0;
    const void *there = NULL;
    void *room = NULL;
    TRITONSERVER_Error *err = binput_gpu_size(run->batch, of, run->batch->rows, &size, &there);
    if (err)
        return err;
    if (there && (uintptr_t)there % GPU_ALIGN == 0)
        return bind_gpu_memory(run, input, there, size, shape, rank);
    OrtStatus *status =
        api->CreateTensorAsOrtValue(run->instance->session->allocator, shape, rank,
                                    run->input_tensors[input]->type, &run->input_values[input]);
    if (!status)
        status = api->GetTensorMutableData(run->input_values[input], &room);
    if (!status && size)
        binput_gpu_copy(run->batch, of, room, size);
    return ort_err(api, status);
}

/* Puts the strings of an item into a tensor from element `first` on; with lengths, so that NULs
 * inside are kept. */
static TRITONSERVER_Error *fill_strings(struct run *run, size_t input, uint32_t index,
                                        int64_t elements, size_t first)
{
    const OrtApi *api = run_ort(run)->api;
    OrtValue *value = run->input_values[input];
    const char *name = run->input_names[input];
    const void *data = NULL;
    uint64_t left = 0;
    TRITONSERVER_Error *err = binput_bytes(run->batch, &run->inputs[input], index, &data, &left);
    if (err)
        return err;
    const char *at = data;
    for (int64_t i = 0; i < elements; i++) {
        uint32_t length = 0;
        if (left >= sizeof length)
            memcpy(&length, at, sizeof length);
        if (left < sizeof length || left - sizeof length < length)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "incomplete string data for inference input '%s': %lld of %lld "
                            "elements are there",
                            name, (long long)i, (long long)elements);
        char *to;
        err = ort_err(
            api, api->GetResizedStringTensorElementBuffer(value, first + (size_t)i, length, &to));
        if (err)
            return err;
        memcpy(to, at + sizeof length, length);
        at += sizeof length + length;
        left -= sizeof length + length;
    }
    if (left == 0)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected data after the %lld string elements of inference input '%s'",
                    (long long)elements, name);
}

static TRITONSERVER_Error *bind_strings(struct run *run, size_t input)
{
    const OrtApi *api = run_ort(run)->api;
    const struct model_tensor *tensor = run->input_tensors[input];
    int64_t shape[BRUN_MAX_DIMS];
    size_t rank = binput_shape(run->batch, &run->inputs[input], run->batch->rows, shape);
    OrtAllocator *allocator;
    OrtStatus *status = api->GetAllocatorWithDefaultOptions(&allocator);
    if (!status)
        status = api->CreateTensorAsOrtValue(allocator, shape, rank, tensor->type,
                                             &run->input_values[input]);
    if (status)
        return ort_err(api, status);
    size_t first = 0;
    for (uint32_t i = 0; i < run->batch->count; i++) {
        struct brun_item *item = &run->batch->items[i];
        struct binput_share share;
        if (!binput_share(run->batch, &run->inputs[input], i, &share))
            continue;
        if (!item->err)
            brun_fail(item, fill_strings(run, input, i, share.elements, first));
        first += (size_t)share.elements;
    }
    return NULL;
}

TRITONSERVER_Error *input_bind(struct run *run)
{
    for (size_t i = 0; i < run->input_count; i++) {
        const struct model_tensor *tensor = run->input_tensors[i];
        TRITONSERVER_Error *err = tensor->rank == 0 ? bind_scalar(run, i)
                                  : tensor->datatype == TRITONSERVER_TYPE_BYTES
                                      ? bind_strings(run, i)
                                  : run->instance->session->cuda ? bind_on_gpu(run, i)
                                                                 : bind_plain(run, i);
        if (err)
            return err;
    }
    return NULL;
}

TRITONSERVER_Error *input_find(const struct run *run, const struct model_tensor *tensor,
                               const struct binput **ret_input)
{
    for (size_t i = 0; i < run->input_count; i++)
        if (run->input_tensors[i] == tensor) {
            *ret_input = &run->inputs[i];
            return NULL;
        }
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' is missing", tensor->name);
}

void input_release(struct run *run)
{
    size_t all = run->input_values ? run->input_count + run->model->batch_input_count : 0;
    for (size_t i = 0; i < all; i++)
        if (run->input_values[i])
            run_ort(run)->api->ReleaseValue(run->input_values[i]);
}
