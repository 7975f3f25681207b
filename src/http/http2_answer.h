#pragma once
/* Answers on streams of HTTP/2. An answer is written as one of HTTP/1.1 (http_answer.h); its text
 * becomes a HEADERS frame, what follows it DATA. So both protocols say the same. Worker's thread
 * only. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h2_batch;
struct http2_stream;

/* http2_answer_send - give the session the next part of the answer, which is due
 * (http_conn_is_due). Returns its bytes, without those of a head. */
uint64_t http2_answer_send(struct http2_stream *s);

/* http2_answer_lags - true if parts of the answer wait since an earlier turn. */
bool http2_answer_lags(const struct http2_stream *s);

/* http2_answer_left - bytes left of the current part. s may be NULL. */
uint64_t http2_answer_left(const struct http2_stream *s);

/* http2_answer_put - put the next n bytes into the batch, after the frame's header.
 * returns  false if the batch must be written first */
bool http2_answer_put(struct http2_stream *s, struct h2_batch *b, const uint8_t *head, size_t n);

/* http2_answer_drop - the stream closes: free what was not sent. */
void http2_answer_drop(struct http2_stream *s);
