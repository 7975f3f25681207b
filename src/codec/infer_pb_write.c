#include "codec/infer_pb_write.h"

#include "codec/pb_utf8.h"

/* The size of a string field; it is omitted if it is empty. */
static uint64_t string_bytes(struct infer_pb_slice s)
{
    return s.len ? pb_wire_bytes_bytes(s.len) : 0;
}

static uint8_t *infer_pb_write_put_string(uint8_t *to, uint32_t number, struct infer_pb_slice s)
{
    return s.len ? pb_wire_put_bytes(to, number, s.data, s.len) : to;
}

static bool utf8(struct infer_pb_slice s)
{
    return pb_utf8_valid(s.data, s.len);
}

static uint64_t value_bytes(const struct infer_pb_param *p)
{
    switch (p->choice) {
    case INFER_PB_BOOL:
        return 2;
    case INFER_PB_INT64:
    case INFER_PB_UINT64:
        return 1 + pb_wire_varint_bytes(p->bits);
    case INFER_PB_DOUBLE:
        return 9;
    case INFER_PB_STRING:
        return pb_wire_bytes_bytes(p->string.len);
    case INFER_PB_NONE:
        break;
    }
    return 0;
}

/* The key and value of a map entry are written even if they are empty. */
static uint64_t param_bytes(const struct infer_pb_param *p)
{
    return pb_wire_bytes_bytes(p->name.len) + pb_wire_bytes_bytes(value_bytes(p));
}

static uint8_t *infer_pb_write_put_param(uint8_t *to, uint32_t number,
                                         const struct infer_pb_param *p)
{
    to = pb_wire_put_varint(pb_wire_put_tag(to, number, PB_WIRE_BYTES), param_bytes(p));
    to = pb_wire_put_bytes(to, 1, p->name.data, p->name.len);
    to = pb_wire_put_varint(pb_wire_put_tag(to, 2, PB_WIRE_BYTES), value_bytes(p));
    switch (p->choice) {
    case INFER_PB_BOOL:
        to = pb_wire_put_tag(to, INFER_PB_BOOL, PB_WIRE_VARINT);
        *to++ = p->truth;
        return to;
    case INFER_PB_INT64:
    case INFER_PB_UINT64:
        return pb_wire_put_varint(pb_wire_put_tag(to, p->choice, PB_WIRE_VARINT), p->bits);
    case INFER_PB_DOUBLE:
        to = pb_wire_put_tag(to, INFER_PB_DOUBLE, PB_WIRE_FIXED64);
        memcpy(to, &p->real, sizeof(p->real));
        return to + sizeof(p->real);
    case INFER_PB_STRING:
        return pb_wire_put_bytes(to, INFER_PB_STRING, p->string.data, p->string.len);
    case INFER_PB_NONE:
        break;
    }
    return to;
}

static uint64_t dims_bytes(const struct infer_pb_output *o)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < o->rank; i++)
        n += pb_wire_varint_bytes((uint64_t)o->shape[i]);
    return n;
}

static uint8_t *infer_pb_write_put_output(uint8_t *to, const struct infer_pb_output *o)
{
    to = pb_wire_put_varint(pb_wire_put_tag(to, 5, PB_WIRE_BYTES), o->wire_bytes);
    to = infer_pb_write_put_string(infer_pb_write_put_string(to, 1, o->name), 2, o->datatype);
    if (!o->rank)
        return to;
    to = pb_wire_put_varint(pb_wire_put_tag(to, 3, PB_WIRE_BYTES), dims_bytes(o));
    for (uint32_t i = 0; i < o->rank; i++)
        to = pb_wire_put_varint(to, (uint64_t)o->shape[i]);
    return to;
}

static bool by_reference(const struct infer_pb_output *o)
{
    return o->data_bytes > INFER_PB_COPY_BYTES;
}

enum infer_pb_result infer_pb_write_measure(struct infer_pb_response *r, struct infer_pb_size *ret)
{
    bool ok =
        utf8(r->model_name) && utf8(r->model_version) && utf8(r->id) && utf8(r->error_message);
    uint64_t inner =
        string_bytes(r->model_name) + string_bytes(r->model_version) + string_bytes(r->id);
    for (const struct infer_pb_param *p = r->params; p; p = p->next) {
        ok = ok && utf8(p->name) && (p->choice != INFER_PB_STRING || utf8(p->string));
        inner += pb_wire_bytes_bytes(param_bytes(p));
    }
    uint64_t referenced = 0;
    uint32_t references = 0;
    for (uint32_t i = 0; i < r->output_count; i++) {
        struct infer_pb_output *o = &r->outputs[i];
        ok = ok && utf8(o->name);
        o->wire_bytes = string_bytes(o->name) + string_bytes(o->datatype);
        if (o->rank)
            o->wire_bytes += pb_wire_bytes_bytes(dims_bytes(o));
        inner += pb_wire_bytes_bytes(o->wire_bytes) + pb_wire_bytes_bytes(o->data_bytes);
        if (by_reference(o)) {
            referenced += o->data_bytes;
            references++;
        }
    }
    uint64_t total =
        r->streamed ? string_bytes(r->error_message) + pb_wire_bytes_bytes(inner) : inner;
    *ret = (struct infer_pb_size){total, inner, (size_t)(total - referenced), 2 * references + 1};
    return ok ? INFER_PB_OK : INFER_PB_NOT_UTF8;
}

static uint8_t *put_descriptions(uint8_t *to, const struct infer_pb_response *r)
{
    to = infer_pb_write_put_string(
        infer_pb_write_put_string(infer_pb_write_put_string(to, 1, r->model_name), 2,
                                  r->model_version),
        3, r->id);
    for (const struct infer_pb_param *p = r->params; p; p = p->next)
        to = infer_pb_write_put_param(to, 4, p);
    for (uint32_t i = 0; i < r->output_count; i++)
        to = infer_pb_write_put_output(to, &r->outputs[i]);
    return to;
}

uint32_t infer_pb_write(const struct infer_pb_response *r, const struct infer_pb_size *size,
                        uint8_t *head, struct iovec *pieces)
{
    uint8_t *to = head;
    uint8_t *start = head; /* of the current run */
    uint32_t count = 0;
    if (r->streamed) {
        to = infer_pb_write_put_string(to, 1, r->error_message);
        to = pb_wire_put_varint(pb_wire_put_tag(to, 2, PB_WIRE_BYTES), size->inner);
    }
    to = put_descriptions(to, r);
    for (uint32_t i = 0; i < r->output_count; i++) {
        const struct infer_pb_output *o = &r->outputs[i];
        if (!by_reference(o)) {
            to = pb_wire_put_bytes(to, 6, o->data, (size_t)o->data_bytes);
            continue;
        }
        to = pb_wire_put_varint(pb_wire_put_tag(to, 6, PB_WIRE_BYTES), o->data_bytes);
        pieces[count++] = (struct iovec){start, (size_t)(to - start)};
        pieces[count++] = (struct iovec){(void *)(uintptr_t)o->data, (size_t)o->data_bytes};
        start = to;
    }
    if (to > start || count == 0)
        pieces[count++] = (struct iovec){start, (size_t)(to - start)};
    return count;
}
