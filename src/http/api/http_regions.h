#pragma once
/* Shared memory over HTTP: /v2/systemsharedmemory and /v2/cudasharedmemory, and what an inference
 * request says of it. Worker's thread only. */
#include "base/err.h"
#include "regions/regions_lend.h"

#include <stdbool.h>
#include <yyjson.h>

struct http_exchange;
struct http_message;

/* http_regions_serve - tell of regions, register or unregister.
 * errors  when x was not answered */
struct err *http_regions_serve(struct http_exchange *x, struct http_message *m);

/* http_regions_part - what the parameters of an input or an output name.
 * params     NULL = there are none
 * ret_given  false: no region is named
 * errors     INTERNAL, INVALID_ARG: a value of another type, also where no region is named */
struct err *http_regions_part(yyjson_val *params, struct regions_part *ret, bool *ret_given);
