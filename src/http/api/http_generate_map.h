#pragma once
/* From the JSON of generate to a request: members that are called as inputs of the model are their
 * data, all others parameters. Worker's thread only. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct http_exchange;
struct http_infer_input;
struct http_message;
struct model_config;
struct model_io;
struct request;

/* http_generate_map - fill r from the body of m, as far as it says something.
 * errors  in the reference's words */
struct err *http_generate_map(struct http_exchange *x, struct request *r, struct http_message *m);

/* http_generate_map_shape - describe so many elements as an input: dimensions of fixed size get
 * theirs, the last one of any size the rest. Returns false if they do not fit. */
bool http_generate_map_shape(const struct model_config *c, const struct model_io *io,
                             uint64_t elements, struct http_infer_input *d);
