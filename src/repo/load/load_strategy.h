#pragma once
/* Which library decides about the batches of a model (plugin/batch_strategy.h): the one that a
 * parameter names, else the first that is found beside the version, the model or the backend.
 * Private to repo/.
 * source  docs/user/models.md, "Decide which requests form a batch"; docs/user/securing-loads.md */
#include "base/err.h"

#include <stdint.h>

#define LOAD_STRATEGY_PARAMETER "TRITON_BATCH_STRATEGY_PATH"
#define LOAD_STRATEGY_LIBRARY   "batchstrategy.so"

struct Inference__ModelConfig;
struct plugin_model;

/* load_strategy_path - what the parameter says; NULL = it is not set. */
const char *load_strategy_path(const struct Inference__ModelConfig *proto);

/* load_strategy - find the library of an initialized model, and open it: m->strategy. A model
 * whose requests are sequences has none.
 * proto     as it is after the backend completed it
 * backends  the directory in which each backend has one of its name
 * errors    in the reference's words NOT_FOUND where the parameter names no file, INVALID_ARG
 *           where that lies outside of the model's directory or the model's requests are
 *           sequences; UNSUPPORTED for a model in a process of its own; what opening it says */
struct err *load_strategy(struct plugin_model *m, const struct Inference__ModelConfig *proto,
                          const char *backends);
