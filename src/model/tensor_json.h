#pragma once
/* The JSON form of datatypes. Pure. */
#include "codec/json_tensor.h"
#include "model/datatype.h"

/* tensor_json_type - how elements of a datatype are read and written; false for
 * DATATYPE_INVALID. */
bool tensor_json_type(enum datatype t, struct json_tensor_type *ret);
