#pragma once
/* Writes answers: all answers that are due go out in one system call. A connection keeps
 * unwritten answers only if its client is slow. Worker's thread only. */
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct http_conn;
struct http_exchange;

/* A worker's buffer for answers that are being written. */
struct http_out {
    char *text; /* HTTP_OUT_BYTES; NULL until first used */
    size_t used;
    struct iovec *iov;
    size_t count;
    uint64_t bytes; /* that they are */
    size_t cap;
};

#define HTTP_OUT_BYTES ((size_t)128 << 10)

void http_out_fini(struct http_out *o);

/* http_out_add - add a piece of the answers; its bytes must stay until they are written. Bytes
 * right behind the last piece in the worker's buffer become part of it. */
void http_out_add(struct http_out *o, const void *bytes, size_t len);

/* http_out_write - write a single answer, or an event of one, into the worker's buffer, and count
 * it. */
void http_out_write(struct http_exchange *x, struct http_out *o);

/* http_out_flush     - write answers that are due, a batch of them: see http_conn.flush
 * http_out_flush_all - write all of them, as far as the socket takes them, and read nothing */
void http_out_flush(struct http_conn *c);
void http_out_flush_all(struct http_conn *c);

/* http_out_continue - the socket takes bytes again: continue with the backlog. */
void http_out_continue(struct http_conn *c);

/* http_out_drop - free the backlog; NULL is fine. */
struct http_backlog;
void http_out_drop(struct http_backlog *b);
