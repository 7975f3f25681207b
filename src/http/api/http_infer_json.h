#pragma once
/* The JSON of an inference request, and the binary tensors after it. Worker's thread only. */
#include "base/err.h"

#include <stddef.h>

struct http_exchange;
struct http_message;
struct request;

/* http_infer_json_fill - fill r from the body of m, whose first json_len > 0 bytes are JSON;
 * note in x how outputs are requested. Tensors point into m->buf, to which r then holds a
 * reference; if m->buf is NULL they are copied. */
struct err *http_infer_json_fill(struct http_exchange *x, struct request *r, struct http_message *m,
                                 size_t json_len);
