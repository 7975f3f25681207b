#pragma once

#include <yyjson.h>

#include "triton/core/tritonbackend.h"

/* Reads configurations, which the server passes as JSON. Every returned yyjson_val is borrowed
 * from its document; every getter accepts NULL for a missing value. */

/* bconfig_of_model - read a model's configuration.
 * ret_doc  owned by the caller: yyjson_doc_free
 * errors   of the server, or INTERNAL for invalid JSON */
TRITONSERVER_Error *bconfig_of_model(TRITONBACKEND_Model *model, yyjson_doc **ret_doc);

/* bconfig_read - read a model's configuration in the place of an earlier one.
 * doc                 NULL or the earlier one, which is freed; owned by the caller: yyjson_doc_free
 * ret_config          the root
 * ret_max_batch_size  of the configuration; 0 = the model does not batch
 * errors              as bconfig_of_model: the earlier one is gone too */
TRITONSERVER_Error *bconfig_read(TRITONBACKEND_Model *model, yyjson_doc **doc,
                                 yyjson_val **ret_config, int64_t *ret_max_batch_size);

/* bconfig_of_backend - read the settings of the command line for a backend.
 * ret_doc  owned by the caller: yyjson_doc_free; its root has the member "cmdline", or is empty */
TRITONSERVER_Error *bconfig_of_backend(TRITONBACKEND_Backend *backend, yyjson_doc **ret_doc);

/* bconfig_is_listed - whether a name is in a list that ends with NULL. */
bool bconfig_is_listed(const char *const *names, const char *name);

/* bconfig_warn_unknown - log each setting of the command line that nobody reads.
 * settings  the member "cmdline"; NULL is allowed
 * names     those that the backend has besides the server's own; ends with NULL */
void bconfig_warn_unknown(TRITONBACKEND_Backend *backend, yyjson_val *settings,
                          const char *const *names);

/* bconfig_set_of_model - report a completed configuration.
 * doc      borrowed; call it only within TRITONBACKEND_ModelInitialize */
TRITONSERVER_Error *bconfig_set_of_model(TRITONBACKEND_Model *model, yyjson_mut_doc *doc);

/* bconfig_int - a number, written as a JSON number or as a string.
 * returns  `absent` if it is missing or neither */
int64_t bconfig_int(yyjson_val *val, int64_t absent);

/* bconfig_shape - read an array of numbers.
 * ret_dims  cap slots
 * returns   how many there are; when that is more than cap, only cap are written */
size_t bconfig_shape(yyjson_val *array, int64_t *ret_dims, size_t cap);

enum { BCONFIG_SHAPE_TEXT = 1024 };

/* bconfig_shape_text - write a shape for people, as "[2,-1]"; what is too long is cut.
 * text     BCONFIG_SHAPE_TEXT bytes
 * returns  text */
const char *bconfig_shape_text(const int64_t *dims, size_t rank, char *text);

/* bconfig_parameter - the string value of a model's parameter.
 * config   the configuration's root
 * returns  borrowed; NULL if there is none */
const char *bconfig_parameter(yyjson_val *config, const char *key);

/* Parts of a configuration that not every backend supports, as bits. */
enum {
    BCONFIG_BATCH_INPUT = 1,
    BCONFIG_BATCH_OUTPUT = 2,
    BCONFIG_CONTROLS = 4,
    BCONFIG_STATES = 8,
    BCONFIG_RAGGED = 16,
};

/* bconfig_refuse - refuse a configuration that has one of these parts.
 * backend  its name, for the error
 * errors   UNSUPPORTED naming the model, the part and whose it is */
TRITONSERVER_Error *bconfig_refuse(yyjson_val *config, const char *model, const char *backend,
                                   unsigned parts);

/* bconfig_warn_optional - log a warning for each optional input, for a backend that has none: a
 * request that leaves one out is refused (see binput_collect). */
void bconfig_warn_optional(yyjson_val *config, const char *model, const char *backend);

/* bconfig_first_gpu - the GPU of the first instance of a model whose instances are all on GPUs.
 * returns  -1 if there is none */
int32_t bconfig_first_gpu(yyjson_val *config);

/* bconfig_parse_int - parse the text of a setting as an integer that fits int32.
 * errors   INVALID_ARG naming the text */
TRITONSERVER_Error *bconfig_parse_int(const char *text, int64_t *ret_value);

/* The most threads that a setting may ask a runtime for. Runtimes end the process when they
 * cannot start as many as they were told to. */
enum { BCONFIG_MOST_THREADS = 1024 };

/* bconfig_parse_threads - parse a number of threads as bconfig_parse_int does.
 * errors   INVALID_ARG, also if it is above BCONFIG_MOST_THREADS */
TRITONSERVER_Error *bconfig_parse_threads(const char *text, int64_t *ret_count);

/* bconfig_parse_bool - parse true, on, 1, false, off or 0, in any case.
 * errors   INVALID_ARG naming the text */
TRITONSERVER_Error *bconfig_parse_bool(const char *text, bool *ret_value);

/* bconfig_datatype - parse the name of a data type in configurations, "TYPE_FP32".
 * returns  TRITONSERVER_TYPE_INVALID if it is none */
TRITONSERVER_DataType bconfig_datatype(const char *name);

/* bconfig_control_type - the data type of a sequence control: that of its true and false values,
 * or the one it names.
 * returns  the name in configurations, "TYPE_INVALID" if there is none */
const char *bconfig_control_type(yyjson_val *control);
