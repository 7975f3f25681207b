#pragma once
/* From the JSON of generate to a request: members that are called as inputs of the model are their
 * data, all others parameters. Worker's thread only. */
#include "base/err.h"

struct http_exchange;
struct http_message;
struct request;

/* http_generate_map - fill r from the body of m, as far as it says something.
 * errors  in the reference's words */
struct err *http_generate_map(struct http_exchange *x, struct request *r, struct http_message *m);
