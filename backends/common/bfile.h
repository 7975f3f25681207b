#pragma once

#include <stdbool.h>
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

/* bfile_check_folder - bfile_check_kind for all that lies in the folder of a file, and in folders
 * below: a runtime that is given the file finds others there by itself. */
TRITONSERVER_Error *bfile_check_folder(const char *path, const char *model);

/* bfile_climbs - true if the name of a file in a directory has a part "..". */
bool bfile_climbs(const char *file);

/* bfile_of_model - find that file.
 * ret_path  owned by the caller: free
 * errors    UNAVAILABLE if it does not exist; those of bfile_check_kind */
TRITONSERVER_Error *bfile_of_model(TRITONBACKEND_Model *model, yyjson_val *config,
                                   const char *usual, char **ret_path);

/* bfile_read - read a file as a whole.
 * model        its name, for errors
 * ret_content  owned by the caller: free
 * errors       INVALID_ARG if it is no regular file; else INTERNAL. Both name it, and why */
TRITONSERVER_Error *bfile_read(const char *path, const char *model, void **ret_content,
                               size_t *ret_size);
