#pragma once
/* The JSON of an inference request, and the binary tensors after it. Worker's thread only. */
#include "base/err.h"

#include <stddef.h>
#include <yyjson.h>

/* The most parameters of a request. */
#define HTTP_INFER_JSON_PARAMS 8192u

struct http_exchange;
struct http_message;
struct request;

/* http_infer_json_fill - fill r from the body of m, whose first json_len > 0 bytes are JSON;
 * note in x how outputs are requested. Tensors point into m->buf, to which r then holds a
 * reference; if m->buf is NULL they are copied. */
struct err *http_infer_json_fill(struct http_exchange *x, struct request *r, struct http_message *m,
                                 size_t json_len);

/* http_infer_json_id - the request's id, where the object has one. */
struct err *http_infer_json_id(struct request *r, yyjson_val *root);

/* http_infer_json_param - add a parameter that the model may look at.
 * name  len bytes without a zero byte, and one behind them */
struct err *http_infer_json_param(struct request *r, const char *name, size_t len, yyjson_val *v);
