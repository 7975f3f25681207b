#pragma once
/* The parameters of a load request: a configuration, and files that replace the model's
 * directory. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct repo_param;
struct source;

/* override_check - check what can be checked without looking at contents. Pure.
 * errors  INVALID_ARG: files without a configuration, a name twice, a name that leaves the
 *         directory, more than REPO_MAX_PARAMS or REPO_MAX_NAMES_BYTES
 * source  spec/model_repository_extension.txt, Load (RX-33, RX-36, RX-39) */
struct err *override_check(const struct repo_param *params, size_t count);

/* override_config - the configuration among the parameters; NULL if there is none. */
const struct repo_param *override_config(const struct repo_param *params, size_t count);

/* override_write - write the files into a directory of the server's.
 * libraries  the files may be shared libraries
 * ret        NULL if there are no files; else a reference
 * errors     INVALID_ARG for invalid base64, a file in the place of a directory, or a library
 *            that is not allowed; INTERNAL if it cannot be written */
struct err *override_write(const struct repo_param *params, size_t count, bool libraries,
                           struct source **ret);
