#pragma once
/* The parameters of a load: a configuration, and files that take the place of the model's
 * directory. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct repo_param;
struct source;

/* override_check - what can be told without looking at contents. Pure.
 * errors  INVALID_ARG: files without a configuration, two of a name, a name that would leave the
 *         directory, more than REPO_MAX_PARAMS or REPO_MAX_NAMES_BYTES
 * source  spec/model_repository_extension.txt, Load (RX-33, RX-36, RX-39) */
struct err *override_check(const struct repo_param *params, size_t count);

/* override_config - the configuration; NULL when there is none. */
const struct repo_param *override_config(const struct repo_param *params, size_t count);

/* override_write - the files in a directory of ours.
 * libraries  whether they may be shared libraries
 * ret        NULL when there are no files; else a reference
 * errors     INVALID_ARG for what is no base64, a file in the place of a directory, or a library
 *            that may not be; INTERNAL when it cannot be written */
struct err *override_write(const struct repo_param *params, size_t count, bool libraries,
                           struct source **ret);
