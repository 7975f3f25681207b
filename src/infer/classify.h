#pragma once
/* The classification extension: a client gets only the highest values of an output, as strings
 * "value:index[:label]". */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct labels;
struct response;
struct tensor_output;

/* classify_output - replace the output's tensor by a BYTES tensor of shape [batch,] min(classes,
 * elements).
 * batched  the first dimension is the batch
 * labels   of the output; NULL = the strings have no label
 * errors   INVALID_ARG for a datatype without an order, or more than a million elements;
 *          UNAVAILABLE without memory
 * source   as the reference: values are printed with printf("%f") */
struct err *classify_output(struct response *r, struct tensor_output *o, uint64_t classes,
                            bool batched, const struct labels *labels);
