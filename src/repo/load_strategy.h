#pragma once
/* Custom batching strategies: libraries of a model, or of its backend, that decide which requests form a batch. This server has none: a
 * model that brings one would be batched otherwise than its author means. */
#include "base/err.h"

#include <stdint.h>

struct Inference__ModelConfig;

/* load_strategy_check - whether a model goes without one.
 * backend_dir  "" = the backend has no directory
 * errors       UNSUPPORTED, names the parameter or the library; in the reference's words NOT_FOUND where the parameter names no file,
 *              INVALID_ARG where it stands beside sequence_batching */
struct err *load_strategy_check(const struct Inference__ModelConfig *proto, const char *model_dir,
                                int64_t number, const char *backend_dir);
