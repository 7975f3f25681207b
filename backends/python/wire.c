#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_FIRST = 4096, WIRE_ALIGN = 16 };

void wire_fini(struct wire_out *out)
{
    free(out->at);
    *out = (struct wire_out){0};
}

void *wire_grow(struct wire_out *out, size_t bytes)
{
    if (out->failed || bytes > SIZE_MAX / 4 - out->used) {
        out->failed = true;
        return NULL;
    }
    if (out->cap - out->used < bytes) {
        size_t cap = out->cap ? out->cap : WIRE_FIRST;
        while (cap - out->used < bytes)
            cap *= 2;
        char *at = realloc(out->at, cap);
        if (!at) {
            out->failed = true;
            return NULL;
        }
        out->at = at;
        out->cap = cap;
    }
    void *place = out->at + out->used;
    out->used += bytes;
    return place;
}

static void wire_put(struct wire_out *out, const void *bytes, size_t count)
{
    void *place = wire_grow(out, count);
    if (place && count)
        memcpy(place, bytes, count);
}

void wire_put_u32(struct wire_out *out, uint32_t value)
{
    wire_put(out, &value, sizeof value);
}

void wire_put_u64(struct wire_out *out, uint64_t value)
{
    wire_put(out, &value, sizeof value);
}

void wire_put_double(struct wire_out *out, double value)
{
    wire_put(out, &value, sizeof value);
}

void wire_put_text(struct wire_out *out, const char *text, size_t length)
{
    wire_put_u64(out, length);
    char *place = wire_grow(out, length + 1);
    if (!place)
        return;
    if (length)
        memcpy(place, text, length);
    place[length] = '\0';
}

void wire_align(struct wire_out *out)
{
    size_t over = out->used % WIRE_ALIGN;
    if (over) {
        void *place = wire_grow(out, WIRE_ALIGN - over);
        if (place)
            memset(place, 0, WIRE_ALIGN - over);
    }
}

static const char *wire_take(struct wire_in *in, uint64_t bytes)
{
    if (in->bad || bytes > in->bytes - in->used) {
        in->bad = true;
        return NULL;
    }
    const char *place = in->at + in->used;
    in->used += (size_t)bytes;
    return place;
}

/* Reads a number, or a few bytes; what is not there leaves it. */
static void wire_number(struct wire_in *in, void *number, size_t bytes)
{
    const char *place = wire_take(in, bytes);
    if (place)
        memcpy(number, place, bytes);
}

uint32_t wire_u32(struct wire_in *in)
{
    uint32_t value = 0;
    wire_number(in, &value, sizeof value);
    return value;
}

uint64_t wire_u64(struct wire_in *in)
{
    uint64_t value = 0;
    wire_number(in, &value, sizeof value);
    return value;
}

double wire_double(struct wire_in *in)
{
    double value = 0;
    wire_number(in, &value, sizeof value);
    return value;
}

uint32_t wire_count(struct wire_in *in)
{
    uint32_t count = wire_u32(in);
    if (count > WIRE_MAX_COUNT)
        in->bad = true;
    return in->bad ? 0 : count;
}

const char *wire_text(struct wire_in *in, size_t *ret_length)
{
    uint64_t length = wire_u64(in);
    const char *text = length < SIZE_MAX ? wire_take(in, length + 1) : NULL;
    if (!text || text[length] != '\0') {
        in->bad = true;
        text = "";
        length = 0;
    }
    if (ret_length)
        *ret_length = (size_t)length;
    return text;
}

char *wire_said(struct wire_in *in)
{
    size_t length;
    const char *text = wire_text(in, &length);
    if (length > WIRE_MAX_SAID) {
        length = WIRE_MAX_SAID;
        while (length > 0 && (text[length] & 0xc0) == 0x80) /* within a character */
            length--;
    }
    return strndup(text, length);
}

char *wire_put_tensor(struct wire_out *out, const struct wire_tensor *tensor)
{
    wire_put_text(out, tensor->name, tensor->name_length);
    wire_put_u32(out, tensor->datatype);
    wire_put_u32(out, tensor->rank);
    wire_put(out, tensor->shape, tensor->rank * sizeof tensor->shape[0]);
    wire_put_u32(out, tensor->place);
    wire_put_u64(out, tensor->bytes);
    if (tensor->place != WIRE_INLINE) {
        wire_put_u64(out, tensor->where);
        if (tensor->place == WIRE_GPU)
            wire_put(out, &tensor->gpu, sizeof tensor->gpu);
        return NULL;
    }
    wire_align(out);
    char *place = wire_grow(out, (size_t)tensor->bytes);
    if (place && tensor->data && tensor->bytes)
        memcpy(place, tensor->data, (size_t)tensor->bytes);
    return place;
}

void wire_tensor(struct wire_in *in, struct wire_tensor *ret_tensor)
{
    struct wire_tensor *t = ret_tensor;
    t->name = wire_text(in, &t->name_length);
    t->datatype = wire_u32(in);
    t->rank = wire_u32(in);
    if (t->rank > WIRE_MAX_DIMS)
        in->bad = true;
    const char *shape = in->bad ? NULL : wire_take(in, t->rank * sizeof t->shape[0]);
    if (shape)
        memcpy(t->shape, shape, t->rank * sizeof t->shape[0]);
    t->place = wire_u32(in);
    t->bytes = wire_u64(in);
    t->data = NULL;
    t->where = 0;
    if (t->place == WIRE_INLINE) {
        size_t over = in->used % WIRE_ALIGN;
        wire_take(in, over ? WIRE_ALIGN - over : 0);
        t->data = wire_take(in, t->bytes);
    } else {
        t->where = wire_u64(in);
        if (t->place == WIRE_GPU)
            wire_number(in, &t->gpu, sizeof t->gpu);
        if (t->place > WIRE_GPU)
            in->bad = true;
    }
    if (in->bad)
        *t = (struct wire_tensor){.name = "", .place = WIRE_INLINE, .data = ""};
}
