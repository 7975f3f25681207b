#pragma once
/* The classification extension: the highest values of an output instead of all of them, as strings "value:index[:label]". */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct response;
struct tensor_output;

/* http_classify - replace the output's tensor by a BYTES tensor of shape [batch,] min(classes, elements).
 * batched  the first dimension is the batch
 * errors   INVALID_ARG for a datatype that has no order, or more than a million elements; UNAVAILABLE
 * source   parity with the reference: values as printf("%f") prints them */
struct err *http_classify(struct response *r, struct tensor_output *o, uint64_t classes, bool batched);
