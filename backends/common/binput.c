#include "binput.h"

#include <string.h>

#include "berr.h"

/* The part of one request in an input. */
struct binput_part {
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t rank;
    uint32_t pieces;
    uint64_t size;
};

static TRITONSERVER_Error *binput_check_part(const struct brun *run, const struct binput *input,
                                             struct binput_part *part,
                                             const struct binput_part *other,
                                             const struct brun_item *item)
{
    TRITONSERVER_DataType datatype;
    uint64_t wanted;
    TRITONSERVER_Error *err = TRITONBACKEND_InputProperties(
        part->input, NULL, &datatype, &part->shape, &part->rank, &part->size, &part->pieces);
    if (err)
        return err;
    if (datatype != input->datatype)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' has datatype %s, the model expects %s", input->name,
                        TRITONSERVER_DataTypeString(datatype),
                        TRITONSERVER_DataTypeString(input->datatype));
    uint32_t first = run->place->max_batch_size > 0 && !input->unrowed ? 1 : 0;
    if (part->rank > BRUN_MAX_DIMS ||
        !brun_vector_bytes(datatype, part->shape, part->rank, input->vector, &wanted))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' has an impossible shape",
                        input->name);
    if (part->rank < first || (first && part->shape[0] != item->rows) ||
        (other && !input->ragged &&
         (other->rank != part->rank || memcmp(other->shape + first, part->shape + first,
                                              (part->rank - first) * sizeof *part->shape) != 0)))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "the shape of input '%s' does not fit the rest of its batch", input->name);
    if (wanted != part->size && datatype != TRITONSERVER_TYPE_BYTES)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' has %llu bytes, its shape needs %llu", input->name,
                        (unsigned long long)part->size, (unsigned long long)wanted);
    return NULL;
}

static TRITONSERVER_Error *binput_collect_item(const struct brun *run, struct binput *inputs,
                                               size_t count, uint32_t index, uint32_t leader)
{
    const struct brun_item *item = &run->items[index];
    uint32_t given = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < count && !err; i++) {
        struct binput_part *part = &inputs[i].parts[index];
        err = TRITONBACKEND_RequestInput(item->request, inputs[i].name, &part->input);
        if (err) {
            berr_drop(err);
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "the request has no input '%s', which model '%s' needs", inputs[i].name,
                            run->place->model);
        }
        err = binput_check_part(run, &inputs[i], part,
                                index == leader ? NULL : &inputs[i].parts[leader], item);
    }
    if (!err)
        err = TRITONBACKEND_RequestInputCount(item->request, &given);
    if (!err && given != count)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "the request has %u inputs, its batch of model '%s' needs %zu", given,
                       run->place->model, count);
    return err;
}

TRITONSERVER_Error *binput_collect(struct brun *run, struct binput *inputs, size_t count)
{
    struct binput_part *parts =
        scratch_array(&run->place->scratch, count * run->count, sizeof *parts);
    if (!parts)
        return berr_no_memory();
    for (size_t i = 0; i < count; i++)
        inputs[i].parts = parts + i * run->count;
    /* The first valid item decides the shapes; the others must fit it. */
    uint32_t leader = UINT32_MAX;
    for (uint32_t i = 0; i < run->count; i++) {
        struct brun_item *item = &run->items[i];
        if (item->err)
            continue;
        bool leads = leader == UINT32_MAX;
        brun_fail(item, binput_collect_item(run, inputs, count, i, leads ? i : leader));
        if (item->err)
            continue;
        leader = leads ? i : leader;
        item->in_batch = true;
        run->rows += item->rows;
        run->batch_size++;
    }
    return NULL;
}

static const struct binput_part *binput_leading_part(const struct brun *run,
                                                     const struct binput *input)
{
    uint32_t i = 0;
    while (!run->items[i].in_batch)
        i++;
    return &input->parts[i];
}

bool binput_share(const struct brun *run, const struct binput *input, uint32_t index,
                  struct binput_share *ret_share)
{
    const struct binput_part *part = &input->parts[index];
    if (!run->items[index].in_batch)
        return false;
    *ret_share = (struct binput_share){.shape = part->shape, .rank = part->rank, .elements = 1};
    for (uint32_t i = 0; i < part->rank; i++)
        ret_share->elements *= part->shape[i];
    return true;
}

static int64_t all_elements(const struct brun *run, const struct binput *input)
{
    int64_t sum = 0;
    struct binput_share share;
    for (uint32_t i = 0; i < run->count; i++)
        if (binput_share(run, input, i, &share))
            sum += share.elements;
    return sum;
}

size_t binput_shape(const struct brun *run, const struct binput *input, int64_t rows,
                    int64_t *ret_shape)
{
    if (input->ragged) {
        ret_shape[0] = all_elements(run, input);
        return 1;
    }
    const struct binput_part *part = binput_leading_part(run, input);
    if (part->rank)
        memcpy(ret_shape, part->shape, part->rank * sizeof *ret_shape);
    if (run->place->max_batch_size > 0 && !input->unrowed)
        ret_shape[0] = rows;
    return part->rank;
}

/* A piece of a part's contents.
 * cuda  NULL = on the host; else wherever it lies, on the host or on a GPU
 * ret_device  the GPU; -1 = on the host */
static TRITONSERVER_Error *binput_get_piece(const struct binput_part *part, uint32_t index,
                                            const struct bcuda *cuda, const void **ret_piece,
                                            uint64_t *ret_size, int64_t *ret_device)
{
    TRITONSERVER_MemoryType memory_type = cuda ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = cuda ? bcuda_device(cuda) : 0;
    TRITONSERVER_Error *err = TRITONBACKEND_InputBuffer(part->input, index, ret_piece, ret_size,
                                                        &memory_type, &memory_type_id);
    bool on_gpu = memory_type == TRITONSERVER_MEMORY_GPU;
    if (!err && on_gpu && !cuda)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to get input buffer in CPU memory");
    if (!err && *ret_size && !*ret_piece)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "an input has no contents");
    *ret_device = on_gpu ? memory_type_id : -1;
    return err;
}

/* Copies all pieces to `to`, which has room for part->size bytes.
 * cuda  NULL = `to` is on the host; else it is there, and the copies are queued */
static TRITONSERVER_Error *binput_gather(const struct binput_part *part, struct bcuda *cuda,
                                         char *to)
{
    uint64_t room = part->size;
    for (uint32_t i = 0; i < part->pieces; i++) {
        const void *piece = NULL;
        uint64_t size = 0;
        int64_t device;
        TRITONSERVER_Error *err = binput_get_piece(part, i, cuda, &piece, &size, &device);
        if (!err && size > room)
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                           "the input's buffers hold more than its byte size");
        if (!err)
            err = bcuda_put(cuda, to + (part->size - room), piece, size);
        if (err)
            return err;
        room -= size;
    }
    return room == 0 ? NULL
                     : berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                                "the input's buffers hold less than its byte size");
}

TRITONSERVER_Error *binput_bytes(struct brun *run, const struct binput *input, uint32_t index,
                                 const void **ret_data, uint64_t *ret_size)
{
    const struct binput_part *part = &input->parts[index];
    int64_t device;
    *ret_data = NULL;
    *ret_size = part->size;
    if (part->size == 0)
        return NULL;
    if (part->pieces == 1) {
        TRITONSERVER_Error *err = binput_get_piece(part, 0, NULL, ret_data, ret_size, &device);
        if (err || *ret_size == part->size)
            return err;
        *ret_size = part->size;
    }
    char *to = scratch_take(&run->place->scratch, part->size);
    *ret_data = to;
    return to ? binput_gather(part, NULL, to) : berr_no_memory();
}

/* The element of which contents are copies.
 * returns  how many; 0 = the elements differ, or there is none */
static uint64_t count_copies(TRITONSERVER_DataType datatype, const char *data, uint64_t size,
                             uint64_t *ret_element)
{
    uint64_t element = TRITONSERVER_DataTypeByteSize(datatype);
    uint32_t length;
    if (element == 0 && size >= sizeof length) {
        memcpy(&length, data, sizeof length);
        element = sizeof length + (uint64_t)length;
    }
    bool same = element > 0 && element <= size && size % element == 0 &&
                memcmp(data, data + element, size - element) == 0;
    *ret_element = element;
    return same ? size / element : 0;
}

static bool value_of_request(struct brun_place *place, const char *name,
                             TRITONBACKEND_Request *request, const void **ret_value,
                             uint64_t *ret_size)
{
    struct binput_part part = {0};
    struct binput input = {.parts = &part};
    struct brun run = {.place = place};
    uint64_t size = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInput(request, name, &part.input);
    if (!err)
        err = TRITONBACKEND_InputProperties(part.input, NULL, &input.datatype, NULL, NULL,
                                            &part.size, &part.pieces);
    if (!err)
        err = binput_bytes(&run, &input, 0, ret_value, &size);
    bool found = !err && count_copies(input.datatype, *ret_value, size, ret_size) > 0;
    berr_drop(err);
    return found;
}

bool binput_agree(struct brun_place *place, const char *name, TRITONBACKEND_Request *first,
                  TRITONBACKEND_Request *other)
{
    const void *value, *its;
    uint64_t size, its_size;
    return value_of_request(place, name, first, &value, &size) &&
           value_of_request(place, name, other, &its, &its_size) && size == its_size &&
           memcmp(value, its, size) == 0;
}

TRITONSERVER_Error *binput_value(struct brun *run, const struct binput *input,
                                 const void **ret_value, uint64_t *ret_size)
{
    const void *data;
    uint64_t size;
    uint32_t index = (uint32_t)(binput_leading_part(run, input) - input->parts);
    int64_t rows = run->items[index].rows;
    TRITONSERVER_Error *err = binput_bytes(run, input, index, &data, &size);
    if (err)
        return err;
    uint64_t copies = count_copies(input->datatype, data, size, ret_size);
    if (copies == 0 || copies != (uint64_t)rows)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' is one value in the model: the request has to have one element "
                        "in each of its %lld rows, the same in all of them",
                        input->name, (long long)rows);
    void *to = scratch_take(&run->place->scratch, *ret_size);
    if (!to)
        return berr_no_memory();
    *ret_value = memcpy(to, data, *ret_size);
    return NULL;
}

static TRITONSERVER_Error *binput_clear(struct bcuda *cuda, void *to, uint64_t size)
{
    if (size && cuda)
        return bcuda_clear(cuda, to, size);
    memset(to, 0, size);
    return NULL;
}

static void binput_copy_parts(struct brun *run, const struct binput *input, struct bcuda *cuda,
                              char *at, uint64_t size)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const struct binput_part *part = &input->parts[i];
        struct brun_item *item = &run->items[i];
        if (!item->in_batch)
            continue;
        if (!item->err)
            brun_fail(item, binput_gather(part, cuda, at));
        if (item->err)
            brun_fail(item, binput_clear(cuda, at, part->size));
        at += part->size;
        size -= part->size;
    }
    brun_fail_all(run, binput_clear(cuda, at, size));
}

void binput_copy(struct brun *run, const struct binput *input, void *to, uint64_t size)
{
    binput_copy_parts(run, input, NULL, to, size);
}

TRITONSERVER_Error *binput_size(const struct brun *run, const struct binput *input, int64_t rows,
                                uint64_t *ret_size)
{
    int64_t shape[BRUN_MAX_DIMS];
    size_t rank = binput_shape(run, input, rows, shape);
    return brun_vector_bytes(input->datatype, shape, rank, input->vector, ret_size)
               ? NULL
               : berr_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' has an impossible shape",
                          input->name);
}

/* The contents of the batch where they lie, or NULL: more requests, pieces or rows than one, or in
 * another place. */
static TRITONSERVER_Error *binput_in_place(const struct brun *run, const struct binput *input,
                                           const struct bcuda *cuda, uint64_t size,
                                           const void **ret_data)
{
    const struct binput_part *part = binput_leading_part(run, input);
    *ret_data = NULL;
    if (run->batch_size != 1 || part->pieces != 1 || part->size != size)
        return NULL;
    uint64_t found = 0;
    int64_t device = -1;
    TRITONSERVER_Error *err = binput_get_piece(part, 0, cuda, ret_data, &found, &device);
    if (found != size || device != (cuda ? bcuda_device(cuda) : -1))
        *ret_data = NULL;
    return err;
}

bool binput_meets(const struct binput *inputs, size_t count, const void *memory, uint64_t size)
{
    uintptr_t at = (uintptr_t)memory;
    for (size_t i = 0; i < count; i++) {
        uintptr_t its = (uintptr_t)inputs[i].in_place;
        if (at < its + inputs[i].in_place_size && its < at + size)
            return true;
    }
    return false;
}

TRITONSERVER_Error *binput_data(struct brun *run, struct binput *input, size_t align, int64_t rows,
                                const void **ret_data)
{
    uint64_t size;
    TRITONSERVER_Error *err = binput_size(run, input, rows, &size);
    if (!err)
        err = binput_in_place(run, input, NULL, size, ret_data);
    if (err)
        return err;
    if (*ret_data && (uintptr_t)*ret_data % align == 0) {
        input->in_place = *ret_data;
        input->in_place_size = size;
        return NULL;
    }
    void *to = scratch_take(&run->place->scratch, size);
    if (!to)
        return berr_no_memory();
    binput_copy(run, input, to, size);
    *ret_data = to;
    return NULL;
}

TRITONSERVER_Error *binput_gpu_size(struct brun *run, const struct binput *input, int64_t rows,
                                    uint64_t *ret_size, const void **ret_data)
{
    TRITONSERVER_Error *err = binput_size(run, input, rows, ret_size);
    if (!err)
        err = binput_in_place(run, input, run->place->cuda, *ret_size, ret_data);
    if (!err && (uintptr_t)*ret_data % TRITONSERVER_DataTypeByteSize(input->datatype))
        *ret_data = NULL;
    return err;
}

void binput_gpu_copy(struct brun *run, const struct binput *input, void *to, uint64_t size)
{
    binput_copy_parts(run, input, run->place->cuda, to, size);
}
