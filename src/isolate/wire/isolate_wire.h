#pragma once
/* What two processes tell each other, as bytes: numbers of 8 bytes, texts, runs of bytes. Pure.
 * The reader trusts nothing: past a mistake everything reads as 0, and `bad` stays set. */
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void isolate_wire_put(struct strbuf *sb, uint64_t n);

/* isolate_wire_put_text - NULL is told from "". */
void isolate_wire_put_text(struct strbuf *sb, const char *text);
void isolate_wire_put_bytes(struct strbuf *sb, const void *bytes, uint64_t len);

/* isolate_wire_put_room - room for a run of bytes that starts on 64 within the message, for the
 * caller to fill; valid until more is put. */
void *isolate_wire_put_room(struct strbuf *sb, uint64_t len);

struct isolate_wire {
    const uint8_t *begin; /* of the message, for alignment */
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

void isolate_wire_read(struct isolate_wire *w, const void *bytes, size_t len);
uint64_t isolate_wire_get(struct isolate_wire *w);

/* isolate_wire_get_most - a number of at most `most`. */
uint64_t isolate_wire_get_most(struct isolate_wire *w, uint64_t most);

/* isolate_wire_get_text - a text that ends in NUL and holds no other one, inside the message; ""
 * past a mistake. A text that may be NULL is read as such by isolate_wire_get_text_or_null. */
const char *isolate_wire_get_text(struct isolate_wire *w);
const char *isolate_wire_get_text_or_null(struct isolate_wire *w);

/* isolate_wire_get_bytes, isolate_wire_get_room - inside the message, ret_len of them. */
const void *isolate_wire_get_bytes(struct isolate_wire *w, uint64_t *ret_len);
const void *isolate_wire_get_room(struct isolate_wire *w, uint64_t *ret_len);

/* isolate_wire_left - bytes not read yet; 0 past a mistake. */
size_t isolate_wire_left(const struct isolate_wire *w);

/* isolate_wire_get_error - an error with a text that may be NULL, which is no error, and is cut
 * where it is longer than anybody reads.
 * returns  the caller's; NULL past a mistake, too */
struct err *isolate_wire_get_error(struct isolate_wire *w, enum status code);
