#pragma once
/* Datatypes as JSON shows them. Pure. */
#include "codec/json_tensor.h"
#include "model/datatype.h"

/* http_tensor_type - how elements of a datatype are read and written; false for those that JSON
 * does not carry (FP16, BF16) and for no datatype. */
bool http_tensor_type(enum datatype t, struct json_tensor_type *ret);
