/* A custom backend of interface version 1, which has no CustomVersion: OUTPUT0 = INPUT0 +
 * INPUT1, OUTPUT1 = INPUT0 - INPUT1, all INT32, and OUTPUT2, a row each, how many requests the
 * execution had. */
#include "triton/core/custom.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 4096

enum { BAD_INPUT = 1, BAD_OUTPUT };

struct context {
    int batches; /* the model has a batch dimension */
};

/* The wire format of protobuf, as far as it is needed: a varint. */
static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (int shift = 0; *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return value;
}

/* max_batch_size is field 4 of ModelConfig. */
static int reads_batch_size(const CustomInitializeData *data)
{
    const uint8_t *at = (const uint8_t *)data->serialized_model_config;
    const uint8_t *end = at + data->serialized_model_config_size;
    while (at < end) {
        uint64_t tag = varint(&at, end);
        if (tag == (4 << 3))
            return (int)varint(&at, end);
        if ((tag & 7) == 2)
            at += varint(&at, end);
        else if ((tag & 7) == 0)
            varint(&at, end);
        else
            return 0;
    }
    return 0;
}

int CustomInitialize(const CustomInitializeData *data, void **custom_context)
{
    struct context *c = calloc(1, sizeof(*c));
    if (!c)
        return BAD_INPUT;
    c->batches = reads_batch_size(data) > 0;
    *custom_context = c;
    return 0;
}

int CustomFinalize(void *custom_context)
{
    free(custom_context);
    return 0;
}

const char *CustomErrorString(void *custom_context, int errcode)
{
    (void)custom_context;
    return errcode == BAD_INPUT    ? "unable to get the inputs"
           : errcode == BAD_OUTPUT ? "unable to get an output"
                                   : NULL;
}

static int read_input(const CustomPayload *p, CustomGetNextInputFn_t input_fn, const char *name,
                      int32_t *to, uint64_t bytes)
{
    uint64_t have = 0;
    for (;;) {
        const void *content;
        uint64_t size = bytes - have;
        if (!input_fn(p->input_context, name, &content, &size))
            return BAD_INPUT;
        if (!content)
            return have == bytes ? 0 : BAD_INPUT;
        if (size > bytes - have)
            return BAD_INPUT;
        memcpy((char *)to + have, content, size);
        have += size;
    }
}

static int run(const struct context *c, const CustomPayload *p, int32_t payload_count,
               CustomGetNextInputFn_t input_fn, CustomGetOutputFn_t output_fn)
{
    static _Thread_local int32_t a[MAX_ELEMENTS], b[MAX_ELEMENTS];
    if (p->input_cnt != 2 || p->input_shape_dim_cnts[0] != 1)
        return BAD_INPUT;
    uint64_t count = p->batch_size * (uint64_t)p->input_shape_dims[0][0];
    if (count > MAX_ELEMENTS || read_input(p, input_fn, "INPUT0", a, count * 4) ||
        read_input(p, input_fn, "INPUT1", b, count * 4))
        return BAD_INPUT;
    int64_t shape[2] = {p->batch_size, p->input_shape_dims[0][0]};
    for (uint32_t o = 0; o < p->output_cnt; o++) {
        const char *name = p->required_output_names[o];
        int which = name[strlen("OUTPUT")] - '0';
        void *content;
        if (which == 2)
            shape[1] = 1;
        uint64_t bytes = which == 2 ? p->batch_size * 4 : count * 4;
        if (!output_fn(p->output_context, name, c->batches ? 2 : 1, c->batches ? shape : shape + 1,
                       bytes, &content))
            return BAD_OUTPUT;
        for (uint64_t i = 0; content && i < bytes / 4; i++)
            ((int32_t *)content)[i] = which == 2   ? payload_count
                                      : which == 1 ? a[i] - b[i]
                                                   : a[i] + b[i];
    }
    return 0;
}

int CustomExecute(void *custom_context, uint32_t payload_cnt, CustomPayload *payloads,
                  CustomGetNextInputFn_t input_fn, CustomGetOutputFn_t output_fn)
{
    for (uint32_t i = 0; i < payload_cnt; i++)
        payloads[i].error_code =
            run(custom_context, &payloads[i], (int32_t)payload_cnt, input_fn, output_fn);
    return 0;
}
