/* Makes a request from a draft, see abi/draft.h. */
#include "abi/draft.h"

#include "infer/request.h"
#include "model/config.h"
#include "model/shape.h"

#include <inttypes.h>
#include <string.h>

static void fill_params(const struct draft *d, struct request *r)
{
    for (const struct param *p = d->params.first; p; p = p->next) {
        struct param *copy = param_add(&r->params, &r->arena, p->name, strlen(p->name), p->type);
        if (p->type == PARAM_STRING) {
            copy->bytes.data = arena_strndup(&r->arena, p->bytes.data, p->bytes.len);
            copy->bytes.len = p->bytes.len;
        } else if (p->type == PARAM_INT) {
            copy->i = p->i;
        } else if (p->type == PARAM_BOOL) {
            copy->b = p->b;
        } else {
            copy->d = p->d;
        }
    }
}

static void fill_policies(const struct draft_input *in, struct tensor_input *to)
{
    for (uint32_t i = 0; i < in->policy_count; i++) {
        const struct draft_policy *from = &in->policies[i];
        request_add_policy(to, from->name, from->pieces.items, from->pieces.count);
    }
}

/* The shape of a raw input: a batch of one; the only variable dimension follows from the number
 * of bytes. */
static struct err *raw_shape(const struct request *r, const struct model_io *io, uint64_t bytes,
                             int64_t *ret_dims, uint32_t *ret_rank)
{
    uint32_t rank = 0;
    uint32_t open = UINT32_MAX;
    uint64_t elements = 1;
    if (r->config->max_batch_size > 0)
        ret_dims[rank++] = 1;
    for (uint32_t i = 0; i < io->rank; i++) {
        if (io->dims[i] == SHAPE_ANY && open != UINT32_MAX)
            return request_error(r,
                                 "The shape of the raw input '%s' can not be deduced because there "
                                 "are more than one variable-sized dimension",
                                 io->name);
        if (io->dims[i] == SHAPE_ANY)
            open = rank;
        else if (__builtin_mul_overflow(elements, (uint64_t)io->dims[i], &elements))
            elements = 0; /* no request has that many; its number of bytes is refused */
        ret_dims[rank++] = io->dims[i];
    }
    *ret_rank = rank;
    if (io->datatype == DATATYPE_BYTES)
        return open == UINT32_MAX && elements == 1
                   ? NULL
                   : request_error(r,
                                   "For BYTE datatype raw input '%s', the model must have input "
                                   "shape [1]",
                                   io->name);
    uint64_t unit;
    if (__builtin_mul_overflow(elements, (uint64_t)datatype_bytes(io->datatype), &unit))
        unit = 0;
    if (open != UINT32_MAX)
        ret_dims[open] = unit ? (int64_t)(bytes / unit) : 0;
    return NULL;
}

static struct err *fill_raw(const struct draft *d, struct request *r)
{
    const struct draft_input *in = &d->inputs[0];
    const struct model_config *c = r->config;
    if (d->input_count != 1 || c->input_count != 1)
        return request_error(r,
                             "Raw request must only have 1 input (found %" PRIu32
                             ") to be deduced but got %" PRIu32
                             " inputs in '%s' model configuration",
                             d->input_count, c->input_count, c->name);
    const struct model_io *io = &c->inputs[0];
    bool text = io->datatype == DATATYPE_BYTES;
    if (text && in->policy_count)
        return request_error(r, "Raw input with data associated with a host policy setting is not "
                                "currently supported");
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < in->pieces.count; i++)
        bytes += in->pieces.items[i].size;
    int64_t *dims = arena_alloc(&r->arena, (io->rank + 1u) * sizeof(*dims));
    uint32_t rank = 0;
    struct err *e = raw_shape(r, io, bytes, dims, &rank);
    if (e)
        return e;
    /* A string has its length in front. */
    uint32_t *length = arena_alloc(&r->arena, sizeof(*length));
    struct tensor_piece *pieces = arena_alloc(&r->arena, (in->pieces.count + 1u) * sizeof(*pieces));
    uint32_t count = 0;
    *length = (uint32_t)bytes;
    if (text)
        pieces[count++] = (struct tensor_piece){.data = length, .size = sizeof(*length)};
    for (uint32_t i = 0; i < in->pieces.count; i++)
        pieces[count++] = in->pieces.items[i];
    struct tensor_input *to =
        request_add_input(r, io->name, io->name_len, io->datatype, dims, rank, pieces, count);
    fill_policies(in, to);
    return NULL;
}

struct err *draft_fill(const struct draft *d, struct request *r)
{
    r->id = arena_strndup(&r->arena, d->id, strlen(d->id));
    r->flags = d->flags;
    r->correlation_id = d->correlation_id;
    if (d->correlation_string)
        r->correlation_string =
            arena_strndup(&r->arena, d->correlation_string, strlen(d->correlation_string));
    r->priority = d->priority;
    r->timeout_us = d->timeout_us;
    fill_params(d, r);
    for (uint32_t i = 0; i < d->output_count; i++)
        request_add_output(r, d->outputs[i], strlen(d->outputs[i]));
    if (d->raw)
        return fill_raw(d, r);
    for (uint32_t i = 0; i < d->input_count; i++) {
        const struct draft_input *in = &d->inputs[i];
        struct tensor_input *to =
            request_add_input(r, in->name, strlen(in->name), in->datatype, in->shape, in->rank,
                              in->pieces.items, in->pieces.count);
        fill_policies(in, to);
    }
    return NULL;
}
