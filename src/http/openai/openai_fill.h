#pragma once
/* From the JSON of a request to the model's inputs, as its configuration maps them. Worker's thread
 * only. */
#include "base/err.h"

#include <stddef.h>
#include <yyjson.h>

struct openai_call;
struct request;

/* openai_fill - read what a request says about its answer into the call, and fill the model's
 * request.
 * root       the object
 * most       bytes that all inputs together may take
 * ret_param  with an error: the member that it is about; borrowed from root, the map, or static;
 *            NULL = none
 * errors     INVALID_ARG, and those of making inputs */
struct err *openai_fill(struct openai_call *call, struct request *r, yyjson_val *root, size_t most,
                        const char **ret_param);
