#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Protocol buffers: TensorFlow's files say in them what a model's tensors are, and sessions take
 * their settings so. */

/* Bytes that are read field by field. */
struct wire {
    const unsigned char *at, *end;
};

struct wire_field {
    uint32_t number;
    uint64_t value;      /* of a field that is a number */
    struct wire content; /* of any other; empty for a number */
};

/* wire_next - read the next field.
 * returns  false at the end, and where the bytes are no protocol buffers */
bool wire_next(struct wire *wire, struct wire_field *ret_field);

/* wire_is - whether the content is this text. */
bool wire_is(struct wire content, const char *text);

/* wire_text - copy the content as a text.
 * returns  owned by the caller; NULL when there is no memory */
char *wire_text(struct wire content);

/* A message that is being written. */
struct wire_out {
    size_t size;
    bool full; /* something did not fit, and is not there */
    unsigned char bytes[1024];
};

/* wire_put_number - write a field that is a whole number or a truth value. */
void wire_put_number(struct wire_out *out, uint32_t number, int64_t value);

/* wire_put_double - write a field that is a floating-point number of 64 bits. */
void wire_put_double(struct wire_out *out, uint32_t number, double value);

/* wire_put_text - write a field that is a text. */
void wire_put_text(struct wire_out *out, uint32_t number, const char *text);

/* wire_put_message - write a field that is a message. */
void wire_put_message(struct wire_out *out, uint32_t number, const struct wire_out *message);
