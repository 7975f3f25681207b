#pragma once
/* Tensor datatypes: one row each in datatype.def. Numbers are those of TRITONSERVER_DataType and
 * of model_config.proto. */
#include <stddef.h>
#include <stdint.h>

enum datatype {
    DATATYPE_INVALID = 0,
#define DATATYPE(name, number, bytes, config_name) DATATYPE_##name = (number),
#include "model/datatype.def"
#undef DATATYPE
    DATATYPE_COUNT
};

/* datatype_name - the protocols' name ("FP32", "BYTES"); "<invalid>" for others. */
const char *datatype_name(enum datatype t);

/* datatype_config_name - the name in config.pbtxt ("TYPE_FP32", "TYPE_STRING"); "TYPE_INVALID"
 * for others. */
const char *datatype_config_name(enum datatype t);

/* datatype_parse - the datatype with a protocol name; INVALID if there is none. */
enum datatype datatype_parse(const char *name, size_t len);

/* datatype_bytes - bytes per element; 0 for BYTES and INVALID. */
uint32_t datatype_bytes(enum datatype t);
