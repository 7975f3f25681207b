#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Protocol buffers, as models and settings of runtimes are written in them: read field by field,
 * and written one field after the other. */

/* Bytes that are read field by field. */
struct wire {
    const unsigned char *at, *end;
    bool broken; /* wire_next came upon what is no protocol buffers */
};

struct wire_field {
    uint32_t number;
    uint64_t value;      /* of a field that is a number */
    struct wire content; /* of any other; empty for a number */
};

/* wire_next - read the next field.
 * returns  false at the end, and where the bytes are no protocol buffers */
bool wire_next(struct wire *wire, struct wire_field *ret_field);

/* wire_size - how many bytes are left to read. */
size_t wire_size(struct wire wire);

/* wire_varint - read one number of several that stand in a row.
 * returns  false at the end, and where there is none */
bool wire_varint(struct wire *wire, uint64_t *ret_value);

/* wire_is - whether the content is this text. */
bool wire_is(struct wire content, const char *text);

/* wire_text - copy the content as a text.
 * returns  owned by the caller; NULL when there is no memory */
char *wire_text(struct wire content);

/* A message that is being written; begins as {0}. What there is no memory for is left out, and
 * noted. */
struct wire_out {
    unsigned char *bytes; /* wire_free */
    size_t size, capacity;
    bool failed;
};

/* wire_free - free what was written. */
void wire_free(struct wire_out *out);

/* wire_put_number - write a field that is a whole number or a truth value. */
void wire_put_number(struct wire_out *out, uint32_t number, int64_t value);

/* wire_put_float, wire_put_double - write a field that is a floating-point number of 32 or 64
 * bits. */
void wire_put_float(struct wire_out *out, uint32_t number, float value);
void wire_put_double(struct wire_out *out, uint32_t number, double value);

/* wire_put_text - write a field that is a text. */
void wire_put_text(struct wire_out *out, uint32_t number, const char *text);

/* wire_put_space - write a field of `size` bytes, which the caller fills in.
 * returns  borrowed until the next call; NULL when there is no memory */
void *wire_put_space(struct wire_out *out, uint32_t number, size_t size);

/* wire_begin - begin a field that is a message: what is written until wire_end is in it.
 * returns  what wire_end wants */
size_t wire_begin(struct wire_out *out, uint32_t number);
void wire_end(struct wire_out *out, size_t begun);
