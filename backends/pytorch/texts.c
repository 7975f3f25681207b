#include "texts.h"

#include <string.h>

#include "../common/berr.h"

static TRITONSERVER_Error *pytorch_texts_malformed(const struct binput *input, int64_t count)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "incomplete string data for inference input '%s', expecting %lld strings",
                    input->name, (long long)count);
}

/* Checks that there are exactly `count` strings between `at` and `end`. */
static TRITONSERVER_Error *pytorch_texts_check_strings(const struct binput *input, const char *at,
                                                       const char *end, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t length;
        if ((size_t)(end - at) < sizeof length)
            return pytorch_texts_malformed(input, count);
        memcpy(&length, at, sizeof length);
        at += sizeof length;
        if ((size_t)(end - at) < length)
            return pytorch_texts_malformed(input, count);
        at += length;
    }
    return at == end ? NULL : pytorch_texts_malformed(input, count);
}

static TRITONSERVER_Error *pytorch_texts_append(struct libtorch_call *call, size_t argument,
                                                const char *at, int64_t count)
{
    TRITONSERVER_Error *err = NULL;
    for (int64_t i = 0; i < count && !err; i++) {
        uint32_t length = 0;
        if (at)
            memcpy(&length, at, sizeof length);
        err = libtorch_call_string(call, argument, at ? at + sizeof length : "", length);
        if (at)
            at += sizeof length + length;
    }
    return err;
}

TRITONSERVER_Error *texts_give(struct brun *run, const struct binput *input,
                               struct libtorch_call *call, size_t argument)
{
    int64_t shape[BRUN_MAX_DIMS];
    TRITONSERVER_Error *err = NULL;
    size_t rank = binput_shape(run, input, run->rows, shape);
    for (uint32_t i = 0; i < run->count && !err; i++) {
        struct brun_item *item = &run->items[i];
        int64_t count = run->place->max_batch_size > 0 ? item->rows : rank ? shape[0] : 1;
        const void *data = NULL;
        uint64_t size = 0;
        if (!item->in_batch)
            continue;
        if (!item->err)
            brun_fail(item, binput_bytes(run, input, i, &data, &size));
        const char *text = data ? data : "";
        if (!item->err)
            brun_fail(item, pytorch_texts_check_strings(input, text, text + size, count));
        err = pytorch_texts_append(call, argument, item->err ? NULL : text, count);
    }
    return err;
}

/* Writes some strings of a result as one item's output. */
static TRITONSERVER_Error *pytorch_texts_write_share(const struct brun_item *item,
                                                     const struct boutput *output,
                                                     const struct libtorch_call *call, size_t index,
                                                     size_t first, size_t count)
{
    uint64_t size = 0;
    int64_t shape[1] = {(int64_t)count};
    const char *text;
    size_t length;
    void *buffer;
    for (size_t i = first; i < first + count; i++) {
        libtorch_call_result_string(call, index, i, &text, &length);
        if (length > UINT32_MAX)
            return berr_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' has a string of over 4 GiB",
                            output->name);
        size += sizeof(uint32_t) + length;
    }
    TRITONSERVER_Error *err = boutput_buffer(item, output, shape, 1, size, NULL, &buffer);
    char *at = buffer;
    for (size_t i = first; i < first + count && !err; i++) {
        libtorch_call_result_string(call, index, i, &text, &length);
        uint32_t prefix = (uint32_t)length;
        memcpy(at, &prefix, sizeof prefix);
        if (length)
            memcpy(at + sizeof prefix, text, length);
        at += sizeof prefix + length;
    }
    return err;
}

TRITONSERVER_Error *texts_scatter(struct brun *run, const struct boutput *output,
                                  const struct libtorch_call *call, size_t index, size_t count)
{
    size_t first = 0;
    bool batches = run->place->max_batch_size > 0;
    if (batches && (int64_t)count != run->rows)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "failed to split the output tensor '%s' in responses: expected batch size "
                        "of %lld in model output, got %zu",
                        output->name, (long long)run->rows, count);
    for (uint32_t i = 0; i < run->count; i++) {
        struct brun_item *item = &run->items[i];
        size_t share = batches ? (size_t)item->rows : count;
        if (!item->in_batch)
            continue;
        if (!item->err && output->wanted_by[i])
            brun_fail(item, pytorch_texts_write_share(item, output, call, index, first, share));
        first += share;
    }
    return NULL;
}
