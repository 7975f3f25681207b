#pragma once
/* The body of a message, received into its own memory. Worker's thread only. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_account;
struct buf;
struct http1_head;

struct http_body {
    struct buf *buf;   /* NULL = no body is being received */
    size_t at;         /* where it begins in buf, so that the first tensor is aligned to 64 */
    size_t len;        /* bytes received so far */
    uint64_t left;     /* bytes still to come, where the length is known */
    uint64_t max;      /* the most bytes of a body without a length */
    struct err *error; /* why a piece was refused; owned */
};

/* http_body_offset - the offset from a multiple of 64 at which a body must begin, so that the
 * first binary tensor after its JSON is aligned to 64. */
size_t http_body_offset(const struct http1_head *h);

/* http_body_begin - get a buffer for a body of h->content_length bytes, or for the first piece
 * of one without a length. It is placed so that the first binary tensor is aligned to 64 bytes.
 * account  of the connection
 * errors   UNAVAILABLE if the budget is spent */
struct err *http_body_begin(struct http_body *b, struct budget_account *account,
                            const struct http1_head *h);

/* http_body_place - where the next byte belongs.
 * http_body_arrived - `len` bytes, at most b->left, were written there. b->error is set if there
 * is no room for them. */
char *http_body_place(const struct http_body *b);
void http_body_arrived(struct http_body *b, size_t len);

/* http_body_take - copy bytes. Returns how many of len belong to the body. b->error is set if
 * there is no room for them. */
size_t http_body_take(struct http_body *b, const char *bytes, size_t len);

/* http_body_piece - take a piece of a body without a length. Returns false if the body must not
 * or cannot grow; b->error says why. */
bool http_body_piece(struct http_body *b, const char *bytes, size_t len);

/* http_body_text - its bytes; NULL if there are none. */
char *http_body_text(const struct http_body *b);

/* http_body_end - free the buffer. */
void http_body_end(struct http_body *b);
