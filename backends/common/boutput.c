#include "boutput.h"

#include <string.h>

#include "berr.h"

static struct boutput *boutput_find_output(struct boutput *outputs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (outputs[i].served && strcmp(outputs[i].name, name) == 0)
            return &outputs[i];
    return NULL;
}

static TRITONSERVER_Error *boutput_mark_wanted(struct brun *run, uint32_t index,
                                               struct boutput *outputs, size_t count)
{
    TRITONBACKEND_Request *request = run->items[index].request;
    uint32_t asked = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(request, &asked);
    for (uint32_t i = 0; i < asked && !err; i++) {
        const char *name;
        err = TRITONBACKEND_RequestOutputName(request, i, &name);
        struct boutput *output = err ? NULL : boutput_find_output(outputs, count, name);
        if (output)
            output->wanted = output->wanted_by[index] = true;
        else if (!err)
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "model '%s' has no output '%s'",
                           run->place->model, name);
    }
    return err;
}

TRITONSERVER_Error *boutput_select(struct brun *run, struct boutput *outputs, size_t count)
{
    bool *wanted = scratch_array(&run->place->scratch, count * run->count, sizeof *wanted);
    if (!wanted)
        return berr_no_memory();
    for (size_t i = 0; i < count; i++)
        outputs[i].wanted_by = wanted + i * run->count;
    for (uint32_t i = 0; i < run->count; i++)
        if (!run->items[i].err)
            brun_fail(&run->items[i], boutput_mark_wanted(run, i, outputs, count));
    return NULL;
}

TRITONSERVER_Error *boutput_buffer(const struct brun_item *item, const struct boutput *output,
                                   const int64_t *shape, size_t rank, uint64_t size,
                                   const struct bcuda *cuda, void **ret_buffer)
{
    TRITONBACKEND_Output *made;
    TRITONSERVER_MemoryType memory_type = cuda ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = cuda ? bcuda_device(cuda) : 0;
    *ret_buffer = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(item->response, &made, output->name,
                                                           output->datatype, shape, (uint32_t)rank);
    if (!err)
        err = TRITONBACKEND_OutputBuffer(made, ret_buffer, size, &memory_type, &memory_type_id);
    if (!err && memory_type == TRITONSERVER_MEMORY_GPU && !cuda)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to create CPU output buffer");
    if (!err && size && !*ret_buffer)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' got no buffer", output->name);
    return err;
}

TRITONSERVER_Error *boutput_state(const struct brun_item *item, const struct boutput *output,
                                  const int64_t *shape, size_t rank, uint64_t size,
                                  TRITONBACKEND_State **ret_state, void **ret_buffer)
{
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_StateNew(ret_state, item->request, output->name,
                                                     output->datatype, shape, (uint32_t)rank);
    if (!err)
        err =
            TRITONBACKEND_StateBuffer(*ret_state, ret_buffer, size, &memory_type, &memory_type_id);
    if (!err && memory_type == TRITONSERVER_MEMORY_GPU)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to create CPU state buffer");
    return err;
}

/* Gives the server the state for the next request of the item's sequence. */
static TRITONSERVER_Error *keep_state(const struct brun_item *item, const struct boutput *output,
                                      const struct boutput_tensor *share, uint64_t size,
                                      struct bcuda *cuda, const void *data)
{
    TRITONBACKEND_State *state;
    void *buffer = NULL;
    TRITONSERVER_Error *err =
        boutput_state(item, output, share->shape, share->rank, size, &state, &buffer);
    if (!err)
        err = bcuda_put(cuda, buffer, data, size);
    if (!err && cuda) /* what the next request is given has to be there */
        err = bcuda_wait(cuda);
    return err ? err : TRITONBACKEND_StateUpdate(state);
}

TRITONSERVER_Error *boutput_scatter(struct brun *run, const struct boutput *output, int64_t rows,
                                    const struct boutput_tensor *result)
{
    struct boutput_tensor share = *result;
    const char *data = result->data;
    struct bcuda *cuda = result->on_gpu ? run->place->cuda : NULL;
    bool batches = run->place->max_batch_size > 0;
    int64_t found = result->rank ? result->shape[0] : 0;
    if (batches && found != rows)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "failed to split the output tensor '%s' in responses: expected batch size "
                        "of %lld in model output, got %lld",
                        output->name, (long long)rows, (long long)found);
    for (uint32_t i = 0; i < run->count; i++) {
        struct brun_item *item = &run->items[i];
        uint64_t size;
        void *buffer = NULL;
        if (!item->in_batch)
            continue;
        if (batches)
            share.shape[0] = item->rows;
        if (!brun_vector_bytes(output->datatype, share.shape, share.rank, output->vector, &size))
            return berr_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' has an impossible shape",
                            output->name);
        if (!item->err && output->wanted_by[i])
            brun_fail(item,
                      boutput_buffer(item, output, share.shape, share.rank, size, cuda, &buffer));
        if (buffer && size && !item->err)
            brun_fail(item, bcuda_put(cuda, buffer, data, size));
        if (!item->err && output->is_state)
            brun_fail(item, keep_state(item, output, &share, size, cuda, data));
        data += size;
    }
    return NULL;
}
