#pragma once
/* Reads and writes the protobuf wire format. Pure, no memory, any thread.
 * source: the protobuf encoding guide */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum pb_wire_type {
    PB_WIRE_VARINT = 0,
    PB_WIRE_FIXED64 = 1,
    PB_WIRE_BYTES = 2,
    PB_WIRE_FIXED32 = 5,
};

/* The rest of one message. */
struct pb_wire {
    const uint8_t *at;
    const uint8_t *end;
};

struct pb_wire_field {
    uint32_t number;
    enum pb_wire_type type;
    uint64_t value;      /* of VARINT, FIXED64 and FIXED32 */
    const uint8_t *data; /* of BYTES: len bytes inside the message */
    size_t len;
};

enum pb_wire_result {
    PB_WIRE_FIELD, /* ret is set */
    PB_WIRE_END,   /* the message ended between two fields */
    PB_WIRE_BAD,   /* incomplete, a group, field number 0, or a number of more than ten bytes */
};

/* pb_wire_varint - read a number; false if it is incomplete or longer than ten bytes.
 * pb_wire_long_varint is its slow part. */
bool pb_wire_long_varint(struct pb_wire *w, uint64_t *ret);

static inline bool pb_wire_varint(struct pb_wire *w, uint64_t *ret)
{
    if (w->at < w->end && *w->at < 0x80) {
        *ret = *w->at++;
        return true;
    }
    return pb_wire_long_varint(w, ret);
}

/* pb_wire_next - read the next field of any type. */
enum pb_wire_result pb_wire_next(struct pb_wire *w, struct pb_wire_field *ret);

static inline struct pb_wire pb_wire_of(const void *data, size_t len)
{
    const uint8_t *at = data;
    return (struct pb_wire){at, at + len};
}

/* pb_wire_varint_bytes - how many bytes a number needs, 1 to 10. */
static inline size_t pb_wire_varint_bytes(uint64_t v)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    return (bits + 6) / 7;
}

/* pb_wire_put_varint, pb_wire_put_tag, pb_wire_put_bytes - write, and return the next position;
 * there must be room. */
static inline uint8_t *pb_wire_put_varint(uint8_t *to, uint64_t v)
{
    while (v >= 0x80) {
        *to++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *to++ = (uint8_t)v;
    return to;
}

static inline uint8_t *pb_wire_put_tag(uint8_t *to, uint32_t number, enum pb_wire_type type)
{
    return pb_wire_put_varint(to, (uint64_t)number << 3 | type);
}

static inline uint8_t *pb_wire_put_bytes(uint8_t *to, uint32_t number, const void *data, size_t len)
{
    to = pb_wire_put_varint(pb_wire_put_tag(to, number, PB_WIRE_BYTES), len);
    if (len)
        memcpy(to, data, len);
    return to + len;
}

/* pb_wire_bytes_bytes - the size of a field of len bytes with tag and length, for field numbers
 * below 16. */
static inline uint64_t pb_wire_bytes_bytes(uint64_t len)
{
    return 1 + pb_wire_varint_bytes(len) + len;
}
