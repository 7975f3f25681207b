#include "codec/pb_wire.h"

#define MAX_VARINT_BYTES 10

bool pb_wire_long_varint(struct pb_wire *w, uint64_t *ret)
{
    uint64_t value = 0;
    const uint8_t *p = w->at;
    for (unsigned i = 0; i < MAX_VARINT_BYTES && p < w->end; i++) {
        uint8_t byte = *p++;
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            w->at = p;
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool fixed(struct pb_wire *w, size_t bytes, uint64_t *ret)
{
    if ((size_t)(w->end - w->at) < bytes)
        return false;
    *ret = 0;
    memcpy(ret, w->at, bytes); /* little-endian, like the wire */
    w->at += bytes;
    return true;
}

static bool bytes(struct pb_wire *w, struct pb_wire_field *f)
{
    uint64_t len;
    if (!pb_wire_varint(w, &len) || len > (uint64_t)(w->end - w->at))
        return false;
    f->data = w->at;
    f->len = (size_t)len;
    w->at += len;
    return true;
}

enum pb_wire_result pb_wire_next(struct pb_wire *w, struct pb_wire_field *ret)
{
    if (w->at == w->end)
        return PB_WIRE_END;
    uint64_t tag;
    if (!pb_wire_varint(w, &tag) || tag > UINT32_MAX || tag < 8)
        return PB_WIRE_BAD;
    ret->number = (uint32_t)tag >> 3;
    bool ok = false;
    switch (tag & 7) {
    case PB_WIRE_VARINT:
        ok = pb_wire_varint(w, &ret->value);
        break;
    case PB_WIRE_FIXED64:
        ok = fixed(w, 8, &ret->value);
        break;
    case PB_WIRE_BYTES:
        ok = bytes(w, ret);
        break;
    case PB_WIRE_FIXED32:
        ok = fixed(w, 4, &ret->value);
        break;
    default:
        break;
    }
    ret->type = (enum pb_wire_type)(tag & 7);
    return ok ? PB_WIRE_FIELD : PB_WIRE_BAD;
}
