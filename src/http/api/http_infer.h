#pragma once
/* POST /v2/models/M[/versions/N]/infer: makes a request from a message, and the answer from its
 * responses. Worker's thread only. */
#include "base/err.h"
#include "infer/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http1_head;
struct http_exchange;
struct http_message;
struct http_service;
struct serve_version;

/* http_infer_serve - check the message, build the request and submit it; x is answered in any
 * case. */
void http_infer_serve(struct http_exchange *x, struct http_message *m);

/* http_infer_find - the version that a message asks, pinned, where its connection has room.
 * decoupled  it may be of a model that answers any number of times */
struct err *http_infer_find(struct http_exchange *x, const struct http_message *m, bool decoupled,
                            struct serve_version **ret);

/* http_infer_refuse - answer x with an error, which is taken over, and note whom it was about. */
void http_infer_refuse(struct http_exchange *x, const struct http_message *m, const char *id,
                       struct err *e);

/* http_infer_request - an empty request for a version that http_infer_find gave; the pin moves into
 * it. */
struct request *http_infer_request(struct http_exchange *x, struct serve_version *v,
                                   request_respond_fn respond);

/* http_infer_submit - give a request to its model, or refuse it.
 * r  was filled, unless there is an error */
void http_infer_submit(struct http_exchange *x, const struct http_message *m, struct request *r,
                       struct err *e);

/* http_infer_json_bytes - how much of a body is JSON.
 * service   how clients say it: with Inference-Header-Content-Length, or with Content-Type
 * body_len  of the whole body
 * errors    INVALID_ARG if they give no number, or one that is larger than the body */
struct err *http_infer_json_bytes(const struct http_service *service, const struct http1_head *head,
                                  uint64_t body_len, uint64_t *ret);

/* http_infer_too_large - the error for a JSON part of `bytes` when at most `max` are allowed. */
struct err *http_infer_too_large(uint64_t bytes, uint64_t max);
