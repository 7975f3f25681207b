#include "http/api/http_infer_raw.h"

#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "infer/request.h"
#include "model/config.h"
#include "model/shape.h"
#include "serve/version.h"
#include "server/server.h"

#include <inttypes.h>
#include <string.h>

/* The input that is being made. */
struct raw {
    const struct model_io *io;
    int64_t *dims;
    uint32_t rank;
    struct tensor_piece pieces[2]; /* the length of a string, the bytes */
};

/* Begins with the configured shape, with 1 for the batch. One dimension may be variable;
 * *ret_varies points to it, or is NULL. */
static struct err *begin_shape(struct request *r, struct raw *raw, int64_t **ret_varies,
                               uint64_t *ret_elements)
{
    const struct model_io *io = raw->io;
    int64_t *varies = NULL;
    uint64_t elements = 1;
    raw->dims = arena_alloc(&r->arena, (io->rank + 1u) * sizeof(*raw->dims));
    if (r->config->max_batch_size > 0)
        raw->dims[raw->rank++] = 1;
    for (uint32_t i = 0; i < io->rank; i++) {
        int64_t *dim = &raw->dims[raw->rank++];
        *dim = io->dims[i];
        if (*dim != SHAPE_ANY) {
            if (__builtin_mul_overflow(elements, (uint64_t)*dim, &elements))
                elements = 0;
            continue;
        }
        if (varies)
            return request_error(r,
                                 "The shape of the raw input '%s' can not be deduced because there "
                                 "are more than one "
                                 "variable-sized dimension",
                                 io->name);
        varies = dim;
    }
    *ret_varies = varies;
    *ret_elements = elements;
    return NULL;
}

static struct err *make_shape(struct request *r, struct raw *raw)
{
    int64_t *varies = NULL;
    uint64_t elements = 0;
    struct err *e = begin_shape(r, raw, &varies, &elements);
    if (e)
        return e;
    uint64_t bytes = raw->pieces[1].size;
    if (raw->io->datatype != DATATYPE_BYTES) {
        uint64_t row;
        if (__builtin_mul_overflow(elements, (uint64_t)datatype_bytes(raw->io->datatype), &row))
            row = 0;
        if (varies)
            *varies = row ? (int64_t)(bytes / row) : 0;
        return NULL;
    }
    if (varies || elements != 1 || bytes > UINT32_MAX)
        return request_error(
            r, "For BYTE datatype raw input '%s', the model must have input shape [1]",
            raw->io->name);
    uint32_t *length = arena_alloc(&r->arena, sizeof(*length));
    *length = (uint32_t)bytes;
    raw->pieces[0] =
        (struct tensor_piece){.data = length, .size = sizeof(*length), .memory = BUF_MEMORY_CPU};
    return NULL;
}

static struct err *keep_bytes(struct request *r, struct raw *raw, struct http_message *m)
{
    raw->pieces[1] =
        (struct tensor_piece){.data = m->body, .size = m->body_len, .memory = BUF_MEMORY_CPU};
    if (!m->body_len)
        return NULL;
    if (m->buf) {
        r->body = buf_ref(m->buf);
        return NULL;
    }
    void *copy;
    struct err *e = request_keep(r, m->body_len, &copy);
    if (e)
        return e;
    memcpy(copy, m->body, m->body_len);
    raw->pieces[1].data = copy;
    return NULL;
}

struct err *http_infer_raw_fill(struct http_exchange *x, struct request *r, struct http_message *m)
{
    const struct model_config *c = r->config;
    uint64_t max = x->shard->front->server->options->http_max_input_bytes;
    if (m->body_len > max)
        return err_new(STATUS_INVALID_ARG,
                       "Raw input has a byte_size (%zu bytes) that exceeds the maximum allowed "
                       "value of %" PRIu64
                       " bytes. Use --http-max-input-size to increase the limit.",
                       m->body_len, max);
    if (c->input_count != 1)
        return request_error(r,
                             "Raw request must only have 1 input (found 1) to be deduced but got "
                             "%u inputs in '%s' model "
                             "configuration",
                             c->input_count, version_of(r)->name);
    struct raw raw = {.io = &c->inputs[0]};
    struct err *e = keep_bytes(r, &raw, m);
    if (!e)
        e = make_shape(r, &raw);
    if (e)
        return e;
    bool prefixed = raw.pieces[0].size != 0;
    const struct tensor_piece *first = prefixed ? &raw.pieces[0] : &raw.pieces[1];
    uint32_t count = (prefixed ? 1u : 0u) + (raw.pieces[1].size ? 1u : 0u);
    request_add_input(r, raw.io->name, raw.io->name_len, raw.io->datatype, raw.dims, raw.rank,
                      first, count);
    x->binary_default = true;
    return NULL;
}
