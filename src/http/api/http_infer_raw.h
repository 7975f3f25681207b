#pragma once
/* A raw inference request: the body is nothing but the bytes of the model's one input. Worker's
 * thread only. */
#include "base/err.h"

struct http_exchange;
struct http_message;
struct request;

/* http_infer_raw_fill - fill r from the body of m; outputs are wanted binary.
 * errors  INVALID_ARG when the model has other than one input, or its shape does not follow from
 *         the size */
struct err *http_infer_raw_fill(struct http_exchange *x, struct request *r, struct http_message *m);
