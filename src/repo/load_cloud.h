#pragma once
/* What a model of a store may not bring along: code of its own. Private to repo/.
 * source  spec/requirements.md MR-67, MR-68, X-03 */
#include "base/err.h"

#include <stdint.h>

struct Inference__ModelConfig;

/* load_cloud_check - refuses custom backends.
 * proto      completed
 * model_dir  the model's, with the version's files in it
 * errors     UNSUPPORTED */
struct err *load_cloud_check(const struct Inference__ModelConfig *proto, const char *name,
                             const char *model_dir, int64_t version);
