#pragma once
/* POST /v2/models/M[/versions/N]/infer: makes a request from a message, and the answer from its
 * responses. Worker's thread only. */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct http1_head;
struct http_exchange;
struct http_message;
struct request;

/* http_infer_serve - check the message, build the request and submit it; x is answered in any
 * case. */
void http_infer_serve(struct http_exchange *x, struct http_message *m);

/* http_infer_json_bytes - how many bytes of a body are JSON.
 * body_len  of the whole body
 * errors    INVALID_ARG if Inference-Header-Content-Length is not a number, or larger than the
 *           body */
struct err *http_infer_json_bytes(const struct http1_head *head, uint64_t body_len, uint64_t *ret);

/* http_infer_too_large - the error for a JSON part of `bytes` when at most `max` are allowed. */
struct err *http_infer_too_large(uint64_t bytes, uint64_t max);
