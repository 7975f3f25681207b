#include "texts.h"

#include <stdlib.h>
#include <string.h>

#include "../common/berr.h"

/* The number of elements of a shape. */
static size_t count_of(const int64_t *shape, size_t rank)
{
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    return count;
}

static TRITONSERVER_Error *tensorflow_texts_malformed(const struct binput *input, size_t count)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "incomplete string data for inference input '%s', expecting %zu strings",
                    input->name, count);
}

/* Checks that there are exactly `count` strings between `at` and `end`. */
static TRITONSERVER_Error *tensorflow_texts_check_strings(const struct binput *input,
                                                          const char *at, const char *end,
                                                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t length;
        if ((size_t)(end - at) < sizeof length)
            return tensorflow_texts_malformed(input, count);
        memcpy(&length, at, sizeof length);
        at += sizeof length;
        if ((size_t)(end - at) < length)
            return tensorflow_texts_malformed(input, count);
        at += length;
    }
    return at == end ? NULL : tensorflow_texts_malformed(input, count);
}

static void copy_strings(TF_TString *to, const char *at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        TF_StringCopy(&to[i], at + sizeof length, length);
        at += sizeof length + length;
    }
}

/* TensorFlow no longer needs the strings; that may be long after the run, because a variable may
 * keep them. */
static void free_strings(void *data, size_t size, void *arg)
{
    (void)arg;
    TF_TString *strings = data;
    for (size_t i = 0; i < size / sizeof *strings; i++)
        TF_StringDealloc(&strings[i]);
    free(strings);
}

TF_Tensor *texts_one(const char *text)
{
    TF_TString *string = calloc(1, sizeof *string);
    if (!string)
        return NULL;
    TF_StringInit(string);
    TF_StringCopy(string, text, strlen(text));
    return TF_NewTensor(TF_STRING, NULL, 0, string, sizeof *string, free_strings, NULL);
}

TRITONSERVER_Error *texts_give(struct brun *run, const struct binput *input, TF_Tensor **ret_tensor)
{
    int64_t shape[BRUN_MAX_DIMS];
    uint64_t fixed; /* none: whether there can be such a shape is asked */
    size_t rank = binput_shape(run, input, run->rows, shape);
    TRITONSERVER_Error *err = binput_size(run, input, run->rows, &fixed);
    if (err)
        return err;
    size_t count = count_of(shape, rank);
    TF_TString *strings = count < SIZE_MAX ? calloc(count + 1, sizeof *strings) : NULL;
    TF_TString *at = strings;
    if (!strings)
        return berr_no_memory();
    for (size_t i = 0; i < count; i++)
        TF_StringInit(&strings[i]);
    for (uint32_t i = 0; i < run->count; i++) {
        struct brun_item *item = &run->items[i];
        struct binput_share of;
        const void *data = NULL;
        uint64_t size = 0;
        if (!binput_share(run, input, i, &of))
            continue;
        size_t share = (size_t)of.elements;
        if (!item->err)
            brun_fail(item, binput_bytes(run, input, i, &data, &size));
        const char *text = data ? data : "";
        if (!item->err)
            brun_fail(item, tensorflow_texts_check_strings(input, text, text + size, share));
        if (!item->err)
            copy_strings(at, text, share);
        at += share;
    }
    *ret_tensor = TF_NewTensor(TF_STRING, shape, (int)rank, strings, count * sizeof *strings,
                               free_strings, NULL);
    return *ret_tensor ? NULL : berr_no_memory();
}

static TRITONSERVER_Error *tensorflow_texts_write_share(const struct brun_item *item,
                                                        const struct boutput *output,
                                                        const struct boutput_tensor *share)
{
    const TF_TString *strings = share->data;
    size_t count = count_of(share->shape, share->rank);
    uint64_t size = 0;
    void *buffer;
    for (size_t i = 0; i < count; i++) {
        size_t length = TF_StringGetSize(&strings[i]);
        if (length > UINT32_MAX)
            return berr_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' has a string of over 4 GiB",
                            output->name);
        size += sizeof(uint32_t) + length;
    }
    TRITONSERVER_Error *err =
        boutput_buffer(item, output, share->shape, share->rank, size, NULL, &buffer);
    char *at = buffer;
    for (size_t i = 0; i < count && !err; i++) {
        uint32_t length = (uint32_t)TF_StringGetSize(&strings[i]);
        memcpy(at, &length, sizeof length);
        if (length)
            memcpy(at + sizeof length, TF_StringGetDataPointer(&strings[i]), length);
        at += sizeof length + length;
    }
    return err;
}

TRITONSERVER_Error *texts_scatter(struct brun *run, const struct boutput *output,
                                  const struct boutput_tensor *result)
{
    struct boutput_tensor share = *result;
    const TF_TString *strings = result->data;
    bool batches = run->place->max_batch_size > 0;
    int64_t found = result->rank ? result->shape[0] : 0;
    if (output->is_state)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "state '%s' is made of strings",
                        output->name);
    if (batches && found != run->rows)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "failed to split the output tensor '%s' in responses: expected batch size "
                        "of %lld in model output, got %lld",
                        output->name, (long long)run->rows, (long long)found);
    for (uint32_t i = 0; i < run->count; i++) {
        struct brun_item *item = &run->items[i];
        if (!item->in_batch)
            continue;
        if (batches)
            share.shape[0] = item->rows;
        share.data = strings;
        if (!item->err && output->wanted_by[i])
            brun_fail(item, tensorflow_texts_write_share(item, output, &share));
        strings += count_of(share.shape, share.rank);
    }
    return NULL;
}
