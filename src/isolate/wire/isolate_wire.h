#pragma once
/* The bytes that two processes exchange: numbers of 8 bytes, texts, runs of bytes. Pure. The
 * reader trusts nothing: after an error every read returns 0 or "", and `bad` stays set. */
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void isolate_wire_put(struct strbuf *sb, uint64_t n);

/* isolate_wire_put_text - text may be NULL, which is different from "". */
void isolate_wire_put_text(struct strbuf *sb, const char *text);
void isolate_wire_put_bytes(struct strbuf *sb, const void *bytes, uint64_t len);

/* isolate_wire_put_room - make room for a run of bytes that starts at a multiple of 64 within
 * the message; the caller fills it. Valid until more is put. */
void *isolate_wire_put_room(struct strbuf *sb, uint64_t len);

struct isolate_wire {
    const uint8_t *begin; /* the start of the message, for alignment */
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

void isolate_wire_read(struct isolate_wire *w, const void *bytes, size_t len);
uint64_t isolate_wire_get(struct isolate_wire *w);

/* isolate_wire_get_most - read a number of at most `most`. */
uint64_t isolate_wire_get_most(struct isolate_wire *w, uint64_t most);

/* isolate_wire_get_text - read a text that ends in NUL and contains no other NUL; the result
 * lies inside the message, "" after an error.
 * isolate_wire_get_text_or_null - the same for a text that may be NULL. */
const char *isolate_wire_get_text(struct isolate_wire *w);
const char *isolate_wire_get_text_or_null(struct isolate_wire *w);

/* isolate_wire_get_bytes, isolate_wire_get_room - read a run of ret_len bytes; the result lies
 * inside the message. */
const void *isolate_wire_get_bytes(struct isolate_wire *w, uint64_t *ret_len);
const void *isolate_wire_get_room(struct isolate_wire *w, uint64_t *ret_len);

/* isolate_wire_left - bytes not read yet; 0 after an error. */
size_t isolate_wire_left(const struct isolate_wire *w);

/* isolate_wire_code - the code of an error as the other side knows it; UNKNOWN for one that a
 * backend made up or has from a newer ABI. */
enum status isolate_wire_code(const struct err *e);

/* isolate_wire_get_error - read the text of an error. A NULL text means no error; a very long
 * text is cut.
 * returns  owned by the caller; NULL also after an error */
struct err *isolate_wire_get_error(struct isolate_wire *w, enum status code);
