#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read and write protocol buffers field by field. Files of models and settings of runtimes have
 * that format. */

/* The bytes that remain to be read. */
struct wire {
    const unsigned char *at, *end;
    bool broken; /* wire_next found bytes that are no protocol buffer */
};

struct wire_field {
    uint32_t number;
    uint64_t value;      /* if the field is a number */
    struct wire content; /* if it is not a number; empty for a number */
};

/* wire_next - read the next field; groups are skipped, with all that is in them.
 * returns  false at the end, and if the bytes are no protocol buffer (then `broken` is set) */
bool wire_next(struct wire *wire, struct wire_field *ret_field);

/* wire_size - the number of bytes that remain. */
size_t wire_size(struct wire wire);

/* wire_varint - read the next number of a packed field.
 * returns  false at the end, and if the bytes are no number */
bool wire_varint(struct wire *wire, uint64_t *ret_value);

/* wire_is - true if the content is this text. */
bool wire_is(struct wire content, const char *text);

/* wire_copy - copy the content and a NUL.
 * to       wire_size + 1 bytes; NULL does nothing
 * returns  `to` */
char *wire_copy(struct wire content, char *to);

/* wire_text - copy the content to a string.
 * returns  owned by the caller; NULL if memory ran out */
char *wire_text(struct wire content);

/* A message that is being written; initialize it with {0}. If memory runs out, `failed` is set
 * and the rest is left out. */
struct wire_out {
    unsigned char *bytes; /* freed by wire_free */
    size_t size, capacity;
    bool failed;
};

/* wire_free - free the bytes. */
void wire_free(struct wire_out *out);

/* wire_put_number - write a field that is an integer or a bool. */
void wire_put_number(struct wire_out *out, uint32_t number, int64_t value);

/* wire_put_float, wire_put_double - write a field that is a floating-point number of 32 or 64
 * bits. */
void wire_put_float(struct wire_out *out, uint32_t number, float value);
void wire_put_double(struct wire_out *out, uint32_t number, double value);

/* wire_put_text - write a field that is a string. */
void wire_put_text(struct wire_out *out, uint32_t number, const char *text);

/* wire_put_space - write a field of `size` bytes; the caller fills them in.
 * returns  the place of the bytes: borrowed until the next call; NULL if memory ran out */
void *wire_put_space(struct wire_out *out, uint32_t number, size_t size);

/* wire_begin, wire_end - write a field that is a message: all fields that are written between
 * the two calls belong to it.
 * returns  the argument `begun` of wire_end */
size_t wire_begin(struct wire_out *out, uint32_t number);
void wire_end(struct wire_out *out, size_t begun);
