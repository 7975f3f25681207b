#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER = 0, EIGHT_BYTES = 1, BYTES = 2, FOUR_BYTES = 5 };

static bool read_varint(struct wire *wire, uint64_t *ret_value)
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

bool wire_next(struct wire *wire, struct wire_field *ret_field)
{
    uint64_t key, size = 0;
    if (!read_varint(wire, &key))
        return false;
    *ret_field = (struct wire_field){.number = (uint32_t)(key >> 3)};
    switch (key & 7) {
    case NUMBER:
        return read_varint(wire, &ret_field->value);
    case BYTES:
        if (!read_varint(wire, &size))
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
    if (size > (uint64_t)(wire->end - wire->at))
        return false;
    ret_field->content = (struct wire){wire->at, wire->at + size};
    wire->at += size;
    return true;
}

bool wire_is(struct wire content, const char *text)
{
    size_t size = (size_t)(content.end - content.at);
    return strlen(text) == size && (size == 0 || memcmp(content.at, text, size) == 0);
}

char *wire_text(struct wire content)
{
    size_t size = (size_t)(content.end - content.at);
    char *text = malloc(size + 1);
    if (!text)
        return NULL;
    if (size)
        memcpy(text, content.at, size);
    text[size] = '\0';
    return text;
}

static void append_bytes(struct wire_out *out, const void *bytes, size_t size)
{
    if (size > sizeof out->bytes - out->size) {
        out->full = true;
        return;
    }
    if (size)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void append_varint(struct wire_out *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        append_bytes(out, &(unsigned char){(unsigned char)(value | 0x80)}, 1);
    append_bytes(out, &(unsigned char){(unsigned char)value}, 1);
}

static void append_content(struct wire_out *out, uint32_t number, const void *content, size_t size)
{
    append_varint(out, (uint64_t)number << 3 | BYTES);
    append_varint(out, size);
    append_bytes(out, content, size);
}

void wire_put_number(struct wire_out *out, uint32_t number, int64_t value)
{
    append_varint(out, (uint64_t)number << 3 | NUMBER);
    append_varint(out, (uint64_t)value);
}

void wire_put_double(struct wire_out *out, uint32_t number, double value)
{
    append_varint(out, (uint64_t)number << 3 | EIGHT_BYTES);
    append_bytes(out, &value, sizeof value);
}

void wire_put_text(struct wire_out *out, uint32_t number, const char *text)
{
    append_content(out, number, text, strlen(text));
}

void wire_put_message(struct wire_out *out, uint32_t number, const struct wire_out *message)
{
    append_content(out, number, message->bytes, message->size);
    out->full = out->full || message->full;
}
