#pragma once
/* Receiving the body of a message into memory of its own. Worker's thread only. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct http1_head;
struct http_conn;

/* http_body_offset - how far behind a multiple of 64 a body must begin for the first binary
 * tensor, behind its JSON, to lie on one. */
size_t http_body_offset(const struct http1_head *h);

/* http_body_begin - a buffer for a body of parser.head.content_length bytes, or for the first
 * piece of a chunked one, placed so that the first binary tensor lies on 64 bytes.
 * errors  UNAVAILABLE when the budget is spent */
struct err *http_body_begin(struct http_conn *c);

/* http_body_take - copy bytes that came with the head; returns how many of len belong to the
 * body. c->body_error says when there is no room for them. */
size_t http_body_take(struct http_conn *c, const char *bytes, size_t len);

/* http_body_read - receive straight into the buffer.
 * returns  what sock_read returns; c->body_error says when there is no room for what came */
long http_body_read(struct http_conn *c);

/* http_body_piece - a piece of a chunked body (http1_piece_fn); false when it may not or cannot
 * grow: c->body_error says why. */
bool http_body_piece(void *conn, const char *bytes, size_t len);

/* http_body_end - forget the body and its buffer. */
void http_body_end(struct http_conn *c);
