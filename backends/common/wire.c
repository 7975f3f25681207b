#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER = 0, EIGHT_BYTES = 1, BYTES = 2, GROUP = 3, GROUP_END = 4, FOUR_BYTES = 5 };
enum { FIRST_CAPACITY = 256, LENGTH_BYTES = 5 };
enum { MAX_GROUPS = 100 }; /* inside each other, as in protobuf's own reader */

/* The groups that are being skipped. */
struct groups {
    unsigned depth;
    uint32_t numbers[MAX_GROUPS];
};

size_t wire_size(struct wire wire)
{
    return (size_t)(wire.end - wire.at);
}

bool wire_varint(struct wire *wire, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
        unsigned char byte = *wire->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool read_wire_field(struct wire *wire, struct wire_field *ret_field, unsigned *ret_kind)
{
    uint64_t key, size = 0;
    if (!wire_varint(wire, &key) || key > UINT32_MAX || key >> 3 == 0)
        return false;
    *ret_kind = key & 7;
    *ret_field = (struct wire_field){.number = (uint32_t)(key >> 3)};
    switch (*ret_kind) {
    case NUMBER:
        return wire_varint(wire, &ret_field->value);
    case GROUP:
    case GROUP_END:
        return true;
    case BYTES:
        if (!wire_varint(wire, &size))
            return false;
        break;
    case EIGHT_BYTES:
        size = 8;
        break;
    case FOUR_BYTES:
        size = 4;
        break;
    default:
        return false;
    }
    if (size > wire_size(*wire))
        return false;
    ret_field->content = (struct wire){.at = wire->at, .end = wire->at + size};
    wire->at += size;
    return true;
}

/* returns  false if the field cannot be where it is */
static bool follow_groups(struct groups *groups, uint32_t number, unsigned kind)
{
    if (kind == GROUP) {
        if (groups->depth == MAX_GROUPS)
            return false;
        groups->numbers[groups->depth++] = number;
    }
    return kind != GROUP_END || (groups->depth > 0 && groups->numbers[--groups->depth] == number);
}

bool wire_next(struct wire *wire, struct wire_field *ret_field)
{
    struct groups groups;
    groups.depth = 0;
    unsigned kind = NUMBER;
    do {
        if (wire->broken || (wire->at == wire->end && groups.depth == 0))
            return false;
        wire->broken = !read_wire_field(wire, ret_field, &kind) ||
                       !follow_groups(&groups, ret_field->number, kind);
    } while (!wire->broken && (groups.depth > 0 || kind == GROUP_END));
    return !wire->broken;
}

bool wire_is(struct wire content, const char *text)
{
    size_t size = wire_size(content);
    return strlen(text) == size && (size == 0 || memcmp(content.at, text, size) == 0);
}

char *wire_copy(struct wire content, char *to)
{
    size_t size = wire_size(content);
    if (!to)
        return NULL;
    if (size)
        memcpy(to, content.at, size);
    to[size] = '\0';
    return to;
}

char *wire_text(struct wire content)
{
    return wire_copy(content, malloc(wire_size(content) + 1));
}

void wire_free(struct wire_out *out)
{
    free(out->bytes);
    *out = (struct wire_out){0};
}

static void *append_space(struct wire_out *out, size_t size)
{
    if (size > out->capacity - out->size) {
        size_t doubled = out->capacity ? 2 * out->capacity : FIRST_CAPACITY;
        size_t needed = out->size + size;
        size_t capacity = doubled > needed ? doubled : needed;
        unsigned char *bytes = out->failed || needed < size ? NULL : realloc(out->bytes, capacity);
        if (!bytes) {
            out->failed = true;
            return NULL;
        }
        out->bytes = bytes;
        out->capacity = capacity;
    }
    void *space = out->bytes + out->size;
    out->size += size;
    return space;
}

static void append_bytes(struct wire_out *out, const void *bytes, size_t size)
{
    void *space = append_space(out, size);
    if (space && size)
        memcpy(space, bytes, size);
}

static void append_varint(struct wire_out *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        append_bytes(out, &(unsigned char){(unsigned char)(value | 0x80)}, 1);
    append_bytes(out, &(unsigned char){(unsigned char)value}, 1);
}

void *wire_put_space(struct wire_out *out, uint32_t number, size_t size)
{
    append_varint(out, (uint64_t)number << 3 | BYTES);
    append_varint(out, size);
    return append_space(out, size);
}

void wire_put_number(struct wire_out *out, uint32_t number, int64_t value)
{
    append_varint(out, (uint64_t)number << 3 | NUMBER);
    append_varint(out, (uint64_t)value);
}

void wire_put_float(struct wire_out *out, uint32_t number, float value)
{
    append_varint(out, (uint64_t)number << 3 | FOUR_BYTES);
    append_bytes(out, &value, sizeof value);
}

void wire_put_double(struct wire_out *out, uint32_t number, double value)
{
    append_varint(out, (uint64_t)number << 3 | EIGHT_BYTES);
    append_bytes(out, &value, sizeof value);
}

void wire_put_text(struct wire_out *out, uint32_t number, const char *text)
{
    size_t size = strlen(text);
    void *space = wire_put_space(out, number, size);
    if (space && size)
        memcpy(space, text, size);
}

/* The length comes before the content: its bytes are left free, as many as any length needs. */
size_t wire_begin(struct wire_out *out, uint32_t number)
{
    append_varint(out, (uint64_t)number << 3 | BYTES);
    append_space(out, LENGTH_BYTES);
    return out->size;
}

void wire_end(struct wire_out *out, size_t begun)
{
    if (out->failed)
        return;
    size_t length = out->size - begun;
    unsigned char *at = out->bytes + begun - LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7)
        at[i] = (unsigned char)((length & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}
