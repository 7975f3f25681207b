#pragma once
/* The classification extension: the highest values of an output instead of all of them, as
 * strings "value:index[:label]". */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct labels;
struct response;
struct tensor_output;

/* classify_output - replace the output's tensor by a BYTES tensor of shape [batch,] min(classes,
 * elements).
 * batched  the first dimension is the batch
 * labels   of the output; NULL = none: "value:index"
 * errors   INVALID_ARG for a datatype that has no order, or more than a million elements;
 *          UNAVAILABLE
 * source   parity with the reference: values as printf("%f") prints them */
struct err *classify_output(struct response *r, struct tensor_output *o, uint64_t classes,
                            bool batched, const struct labels *labels);
