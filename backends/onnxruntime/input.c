#include "input.h"

#include <string.h>

#include "../common/berr.h"

/* The part of one request in an input. */
struct input_part {
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t rank;
    uint32_t pieces;
    uint64_t size;
    uint64_t elements;
};

static struct input_part *onnxruntime_input_part(const struct run *run, size_t input, uint32_t item)
{
    return &run->parts[input * run->count + item];
}

static const struct run_item *first_good(const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (!run->items[i].err)
            return &run->items[i];
    return NULL;
}

/* Lists the inputs of the first request; a model's optional inputs may be missing. */
static TRITONSERVER_Error *list_inputs(struct run *run, TRITONBACKEND_Request *request)
{
    const struct model *model = run->model;
    struct scratch *scratch = &run->instance->scratch;
    uint32_t count = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputCount(request, &count);
    if (err)
        return err;
    run->input_tensors = scratch_array(scratch, count, sizeof *run->input_tensors);
    size_t all = count + model->batch_input_count;
    run->input_names = scratch_array(scratch, all, sizeof *run->input_names);
    run->input_values = scratch_array(scratch, all, sizeof(OrtValue *));
    run->parts = scratch_array(scratch, (size_t)count * run->count, sizeof *run->parts);
    if (!run->input_tensors || !run->input_names || !run->input_values || !run->parts)
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
    }
    run->input_count = count;
    return NULL;
}

static bool count_elements(struct input_part *part)
{
    part->elements = 1;
    for (uint32_t i = 0; i < part->rank; i++)
        if (part->shape[i] < 0 ||
            __builtin_mul_overflow(part->elements, (uint64_t)part->shape[i], &part->elements))
            return false;
    return true;
}

static TRITONSERVER_Error *onnxruntime_input_check_part(const struct run *run,
                                                        const struct model_tensor *tensor,
                                                        struct input_part *part,
                                                        const struct input_part *other,
                                                        const struct run_item *item)
{
    TRITONSERVER_DataType datatype;
    TRITONSERVER_Error *err = TRITONBACKEND_InputProperties(
        part->input, NULL, &datatype, &part->shape, &part->rank, &part->size, &part->pieces);
    if (err)
        return err;
    if (datatype != tensor->datatype)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' has datatype %s, the model expects %s", tensor->name,
                        TRITONSERVER_DataTypeString(datatype),
                        TRITONSERVER_DataTypeString(tensor->datatype));
    if (part->rank > MODEL_MAX_DIMS || !count_elements(part))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' has an impossible shape",
                        tensor->name);
    uint32_t first = run->model->max_batch_size > 0 ? 1 : 0;
    if (part->rank < first || (first && part->shape[0] != item->rows) ||
        (other && !tensor->ragged &&
         (other->rank != part->rank || memcmp(other->shape + first, part->shape + first,
                                              (part->rank - first) * sizeof *part->shape) != 0)))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "the shape of input '%s' does not fit the rest of its batch", tensor->name);
    uint64_t wanted;
    if (datatype != TRITONSERVER_TYPE_BYTES &&
        (__builtin_mul_overflow(part->elements, TRITONSERVER_DataTypeByteSize(datatype), &wanted) ||
         wanted != part->size))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' has %llu bytes, its shape needs %llu elements of %u bytes",
                        tensor->name, (unsigned long long)part->size,
                        (unsigned long long)part->elements,
                        TRITONSERVER_DataTypeByteSize(datatype));
    return NULL;
}

static TRITONSERVER_Error *onnxruntime_input_collect_item(const struct run *run, uint32_t index,
                                                          uint32_t leader)
{
    const struct run_item *item = &run->items[index];
    uint32_t count = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputCount(item->request, &count);
    if (!err && count != run->input_count)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "the request has %u inputs, the rest of its batch has %zu", count,
                       run->input_count);
    for (size_t i = 0; i < run->input_count && !err; i++) {
        struct input_part *part = onnxruntime_input_part(run, i, index);
        err = TRITONBACKEND_RequestInput(item->request, run->input_names[i], &part->input);
        if (!err)
            err = onnxruntime_input_check_part(
                run, run->input_tensors[i], part,
                index == leader ? NULL : onnxruntime_input_part(run, i, leader), item);
    }
    return err;
}

TRITONSERVER_Error *input_collect(struct run *run)
{
    const struct run_item *first = first_good(run);
    if (!first)
        return NULL;
    TRITONSERVER_Error *err = list_inputs(run, first->request);
    if (err)
        return err;
    /* The first valid item decides the shapes; the others must fit it. */
    uint32_t leader = UINT32_MAX;
    for (uint32_t i = 0; i < run->count; i++) {
        struct run_item *item = &run->items[i];
        if (item->err)
            continue;
        if (leader == UINT32_MAX)
            leader = i;
        run_fail(item, onnxruntime_input_collect_item(run, i, leader));
        if (item->err) {
            if (leader == i)
                leader = UINT32_MAX;
            continue;
        }
        item->in_batch = true;
        run->rows += item->rows;
        run->batch_size++;
    }
    return NULL;
}

static const struct input_part *onnxruntime_input_leading_part(const struct run *run, size_t input)
{
    uint32_t i = 0;
    while (!run->items[i].in_batch)
        i++;
    return onnxruntime_input_part(run, input, i);
}

/* The shape of the whole batch; a scalar in the model has no dimensions. */
static size_t batch_shape(const struct run *run, size_t input, int64_t *shape)
{
    if (run->input_tensors[input]->rank == 0)
        return 0;
    if (run->input_tensors[input]->ragged) {
        shape[0] = 0;
        for (uint32_t i = 0; i < run->count; i++)
            if (run->items[i].in_batch)
                shape[0] += (int64_t)onnxruntime_input_part(run, input, i)->elements;
        return 1;
    }
    const struct input_part *part = onnxruntime_input_leading_part(run, input);
    memcpy(shape, part->shape, part->rank * sizeof *shape);
    if (run->model->max_batch_size > 0)
        shape[0] = run->rows;
    return part->rank;
}

static TRITONSERVER_Error *onnxruntime_input_get_piece(const struct input_part *part,
                                                       uint32_t index, const void **ret_piece,
                                                       uint64_t *ret_size)
{
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_InputBuffer(part->input, index, ret_piece, ret_size,
                                                        &memory_type, &memory_type_id);
    if (!err && memory_type == TRITONSERVER_MEMORY_GPU)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to get input in CPU memory");
    if (!err && *ret_size && !*ret_piece)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "an input has no contents");
    return err;
}

/* Copies all pieces to `to`, which has room for part->size bytes. */
static TRITONSERVER_Error *onnxruntime_input_gather(const struct input_part *part, char *to)
{
    uint64_t room = part->size;
    for (uint32_t i = 0; i < part->pieces; i++) {
        const void *piece = NULL;
        uint64_t size = 0;
        TRITONSERVER_Error *err = onnxruntime_input_get_piece(part, i, &piece, &size);
        if (!err && size > room)
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                           "the input's buffers hold more than its byte size");
        if (err)
            return err;
        if (size)
            memcpy(to + (part->size - room), piece, size);
        room -= size;
    }
    return room == 0 ? NULL
                     : berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                                "the input's buffers hold less than its byte size");
}

/* The contents of a part in one piece; copied only if needed.
 * align  alignment that the caller needs */
static TRITONSERVER_Error *contiguous(struct run *run, const struct input_part *part, size_t align,
                                      const void **ret_data)
{
    if (part->pieces == 1) {
        uint64_t size = 0;
        TRITONSERVER_Error *err = onnxruntime_input_get_piece(part, 0, ret_data, &size);
        if (err || (size == part->size && *ret_data && (uintptr_t)*ret_data % align == 0))
            return err;
    }
    char *copy = scratch_take(&run->instance->scratch, part->size);
    if (!copy)
        return berr_no_memory();
    *ret_data = copy;
    return onnxruntime_input_gather(part, copy);
}

/* Copies all parts, one after the other; the parts of failed items become zeros. */
static TRITONSERVER_Error *gather_batch(struct run *run, size_t input, uint64_t size,
                                        const void **ret_data)
{
    char *to = scratch_take(&run->instance->scratch, size);
    if (!to)
        return berr_no_memory();
    *ret_data = to;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct input_part *part = onnxruntime_input_part(run, input, i);
        struct run_item *item = &run->items[i];
        if (!item->in_batch)
            continue;
        if (!item->err)
            run_fail(item, onnxruntime_input_gather(part, to));
        if (item->err)
            memset(to, 0, part->size);
        to += part->size;
    }
    return NULL;
}

static TRITONSERVER_Error *bind_plain(struct run *run, size_t input)
{
    const struct model *model = run->model;
    const struct model_tensor *tensor = run->input_tensors[input];
    uint64_t size = 0;
    for (uint32_t i = 0; i < run->count; i++)
        if (run->items[i].in_batch)
            size += onnxruntime_input_part(run, input, i)->size;
    const void *data = NULL;
    TRITONSERVER_Error *err =
        run->batch_size == 1
            ? contiguous(run, onnxruntime_input_leading_part(run, input), SCRATCH_ALIGN, &data)
            : gather_batch(run, input, size, &data);
    if (err)
        return err;
    int64_t shape[MODEL_MAX_DIMS];
    size_t rank = batch_shape(run, input, shape);
    /* ONNX Runtime's functions take a non-const pointer, but only read inputs. */
    union {
        const void *from;
        void *to;
    } bytes = {.from = data};
    return ort_err(model->api, model->api->CreateTensorWithDataAsOrtValue(
                                   model->ort->cpu, bytes.to, size, shape, rank, tensor->type,
                                   &run->input_values[input]));
}

/* Puts a part's strings into a tensor from element `first` on; with lengths, so that NULs inside
 * are kept. */
static TRITONSERVER_Error *fill_strings(struct run *run, const struct input_part *part,
                                        const char *name, OrtValue *value, size_t first)
{
    const OrtApi *api = run->model->api;
    const void *data = NULL;
    TRITONSERVER_Error *err = contiguous(run, part, 1, &data);
    if (err || !data)
        return err;
    const char *at = data;
    uint64_t left = part->size;
    for (uint64_t i = 0; i < part->elements; i++) {
        uint32_t length = 0;
        if (left >= sizeof length)
            memcpy(&length, at, sizeof length);
        if (left < sizeof length || left - sizeof length < length)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "incomplete string data for inference input '%s': %llu of %llu "
                            "elements are there",
                            name, (unsigned long long)i, (unsigned long long)part->elements);
        char *to;
        err = ort_err(api, api->GetResizedStringTensorElementBuffer(value, first + i, length, &to));
        if (err)
            return err;
        memcpy(to, at + sizeof length, length);
        at += sizeof length + length;
        left -= sizeof length + length;
    }
    if (left == 0)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected data after the %llu string elements of inference input '%s'",
                    (unsigned long long)part->elements, name);
}

static TRITONSERVER_Error *bind_strings(struct run *run, size_t input)
{
    const OrtApi *api = run->model->api;
    const struct model_tensor *tensor = run->input_tensors[input];
    int64_t shape[MODEL_MAX_DIMS];
    size_t rank = batch_shape(run, input, shape);
    OrtAllocator *allocator;
    OrtStatus *status = api->GetAllocatorWithDefaultOptions(&allocator);
    if (!status)
        status = api->CreateTensorAsOrtValue(allocator, shape, rank, tensor->type,
                                             &run->input_values[input]);
    if (status)
        return ort_err(api, status);
    size_t first = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        struct run_item *item = &run->items[i];
        const struct input_part *part = onnxruntime_input_part(run, input, i);
        if (!item->in_batch)
            continue;
        if (!item->err)
            run_fail(item, fill_strings(run, part, tensor->name, run->input_values[input], first));
        first += part->elements;
    }
    return NULL;
}

TRITONSERVER_Error *input_bind(struct run *run)
{
    for (size_t i = 0; i < run->input_count; i++) {
        bool strings = run->input_tensors[i]->datatype == TRITONSERVER_TYPE_BYTES;
        TRITONSERVER_Error *err = strings ? bind_strings(run, i) : bind_plain(run, i);
        if (err)
            return err;
    }
    return NULL;
}

TRITONSERVER_Error *input_look(const struct run *run, const struct model_tensor *tensor,
                               uint32_t item, struct input_view *ret_view)
{
    for (size_t i = 0; i < run->input_count; i++) {
        if (run->input_tensors[i] != tensor)
            continue;
        const struct input_part *part = onnxruntime_input_part(run, i, item);
        *ret_view = (struct input_view){
            .shape = part->shape, .rank = part->rank, .elements = part->elements};
        return NULL;
    }
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' is missing", tensor->name);
}

void input_release(struct run *run)
{
    size_t all = run->input_values ? run->input_count + run->model->batch_input_count : 0;
    for (size_t i = 0; i < all; i++)
        if (run->input_values[i])
            run->model->api->ReleaseValue(run->input_values[i]);
}
