#pragma once

#include <yyjson.h>

#include "triton/core/tritonbackend.h"

/* bfile_path - the path of the file of a model's version, which may not exist:
 * default_model_filename in the configuration, or `usual`.
 * ret_path  owned by the caller: free */
TRITONSERVER_Error *bfile_path(TRITONBACKEND_Model *model, yyjson_val *config, const char *usual,
                               char **ret_path);

/* bfile_of_model - find that file.
 * ret_path  owned by the caller: free
 * errors    UNAVAILABLE if it does not exist */
TRITONSERVER_Error *bfile_of_model(TRITONBACKEND_Model *model, yyjson_val *config,
                                   const char *usual, char **ret_path);

/* bfile_read - read a file as a whole.
 * model        its name, for errors
 * ret_content  owned by the caller: free
 * errors       INTERNAL naming the file and the reason */
TRITONSERVER_Error *bfile_read(const char *path, const char *model, void **ret_content,
                               size_t *ret_size);
