#pragma once
/* Finds the library that decides about the batches of a model (plugin/batch_strategy.h): the one
 * that a parameter names, else the first one found next to the version, the model or the
 * backend. Private to repo/.
 * source  docs/user/models.md, "Decide which requests form a batch"; docs/user/securing-loads.md */
#include "base/err.h"

#include <stdint.h>

#define LOAD_STRATEGY_PARAMETER "TRITON_BATCH_STRATEGY_PATH"
#define LOAD_STRATEGY_LIBRARY   "batchstrategy.so"

struct Inference__ModelConfig;
struct plugin_model;

/* load_strategy_path - the value of the parameter; NULL = not set. */
const char *load_strategy_path(const struct Inference__ModelConfig *proto);

/* load_strategy_named - find the library that the parameter names.
 * ret     NULL: it is not set; the caller frees it (mem_free)
 * errors  in the reference's words NOT_FOUND if the parameter names no file, INVALID_ARG if the
 *         file lies outside the model's directory or the model is a sequence model */
struct err *load_strategy_named(const char *model_dir, const struct Inference__ModelConfig *proto,
                                char **ret);

/* load_strategy - find the library of an initialized model and open it as m->strategy. A
 * sequence model has none.
 * proto     as the backend completed it
 * backends  the directory that contains a directory for each backend
 * errors    those of load_strategy_named; UNSUPPORTED for a model in its own process; those of
 *           opening the library */
struct err *load_strategy(struct plugin_model *m, const struct Inference__ModelConfig *proto,
                          const char *backends);
