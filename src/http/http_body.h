#pragma once
/* Receives the body of a message into its own memory. Worker's thread only. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct http1_head;
struct http_conn;

/* http_body_offset - the offset from a multiple of 64 at which a body must begin, so that the
 * first binary tensor after its JSON is aligned to 64. */
size_t http_body_offset(const struct http1_head *h);

/* http_body_begin - get a buffer for a body of parser.head.content_length bytes, or for the
 * first piece of a chunked body. It is placed so that the first binary tensor is aligned to 64
 * bytes.
 * errors  UNAVAILABLE if the budget is spent */
struct err *http_body_begin(struct http_conn *c);

/* http_body_take - copy bytes that came with the head. Returns how many of len belong to the
 * body. c->body_error is set if there is no room for them. */
size_t http_body_take(struct http_conn *c, const char *bytes, size_t len);

/* http_body_read - receive directly into the buffer.
 * returns  as sock_read; c->body_error is set if there is no room for what came */
long http_body_read(struct http_conn *c);

/* http_body_piece - take a piece of a chunked body (http1_piece_fn). Returns false if the body
 * must not or cannot grow; c->body_error says why. */
bool http_body_piece(void *conn, const char *bytes, size_t len);

/* http_body_end - free the body and its buffer. */
void http_body_end(struct http_conn *c);
