#pragma once
/* A raw inference request: the body contains only the bytes of the model's one input. Worker's
 * thread only. */
#include "base/err.h"

struct http_exchange;
struct http_message;
struct request;

/* http_infer_raw_fill - fill r from the body of m; outputs are returned in binary.
 * errors  INVALID_ARG if the model does not have exactly one input, or the size does not
 *         determine its shape */
struct err *http_infer_raw_fill(struct http_exchange *x, struct request *r, struct http_message *m);
