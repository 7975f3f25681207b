#pragma once

#include <yyjson.h>

#include "triton/core/tritonbackend.h"

/* bfile_path - the path of the file of a model's version, which may not exist:
 * default_model_filename in the configuration, or `usual`.
 * ret_path  owned by the caller: free */
TRITONSERVER_Error *bfile_path(TRITONBACKEND_Model *model, yyjson_val *config, const char *usual,
                               char **ret_path);

/* bfile_check_kind - refuse a pipe, socket or device, which a runtime might read for ever.
 * path    a regular file, a directory or nothing is fine
 * model   its name, for errors
 * errors  INVALID_ARG naming the file */
TRITONSERVER_Error *bfile_check_kind(const char *path, const char *model);

/* bfile_of_model - find that file.
 * ret_path  owned by the caller: free
 * errors    UNAVAILABLE if it does not exist; those of bfile_check_kind */
TRITONSERVER_Error *bfile_of_model(TRITONBACKEND_Model *model, yyjson_val *config,
                                   const char *usual, char **ret_path);

/* bfile_read - read a file as a whole.
 * model        its name, for errors
 * ret_content  owned by the caller: free
 * errors       those of bfile_check_kind; else INTERNAL naming the file and the reason */
TRITONSERVER_Error *bfile_read(const char *path, const char *model, void **ret_content,
                               size_t *ret_size);
