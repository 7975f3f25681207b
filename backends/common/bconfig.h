#pragma once

#include <yyjson.h>

#include "triton/core/tritonbackend.h"

/* Reads configurations, which the server hands over as JSON. Every yyjson_val that comes back is
 * borrowed from its document; every getter takes NULL for a value that is not there. */

/* bconfig_of_model - read a model's configuration.
 * ret_doc  owned by the caller: yyjson_doc_free
 * errors   what the server says, or INTERNAL for JSON that does not parse */
TRITONSERVER_Error *bconfig_of_model(TRITONBACKEND_Model *model, yyjson_doc **ret_doc);

/* bconfig_of_backend - read the settings that the command line gives a backend.
 * ret_doc  owned by the caller: yyjson_doc_free; its root has the member "cmdline", or is empty */
TRITONSERVER_Error *bconfig_of_backend(TRITONBACKEND_Backend *backend, yyjson_doc **ret_doc);

/* bconfig_set_of_model - report a configuration that was filled in.
 * doc      borrowed; within TRITONBACKEND_ModelInitialize only */
TRITONSERVER_Error *bconfig_set_of_model(TRITONBACKEND_Model *model, yyjson_mut_doc *doc);

/* bconfig_int - give a number that may be written as a JSON number or as a string of one.
 * returns  absent when it is not there or is neither */
int64_t bconfig_int(yyjson_val *val, int64_t absent);

/* bconfig_shape - read an array of numbers.
 * ret_dims  cap slots
 * returns   how many there are; when that is more than cap, only cap are written */
size_t bconfig_shape(yyjson_val *array, int64_t *ret_dims, size_t cap);

/* bconfig_parameter - give the string value of a parameter of a model.
 * config   the configuration's root
 * returns  borrowed; NULL when there is none */
const char *bconfig_parameter(yyjson_val *config, const char *key);

/* bconfig_parse_int - read the text of a setting as an integer that fits int32.
 * errors   INVALID_ARG naming the text */
TRITONSERVER_Error *bconfig_parse_int(const char *text, int64_t *ret_value);

/* bconfig_parse_bool - read true, on, 1, false, off or 0, in any case.
 * errors   INVALID_ARG naming the text */
TRITONSERVER_Error *bconfig_parse_bool(const char *text, bool *ret_value);

/* bconfig_datatype - read a configuration's spelling of a data type, "TYPE_FP32".
 * returns  TRITONSERVER_TYPE_INVALID when it is none */
TRITONSERVER_DataType bconfig_datatype(const char *name);

/* bconfig_control_type - the data type of a control of sequences: the one of its true and false
 * values, or the one it names.
 * returns  a configuration's spelling, "TYPE_INVALID" where there is none */
const char *bconfig_control_type(yyjson_val *control);
