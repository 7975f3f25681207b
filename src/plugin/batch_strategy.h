#pragma once
/* Custom batching strategies: a library of a model, or of its backend, that decides with the
 * dynamic batcher which requests share a batch. It is opened for each version and closed with
 * it, so that the file can be replaced.
 * source  include/triton/core/tritonbackend.h, "Custom batching"; docs/internals/batcher.md */
#include "base/err.h"

#include <stdbool.h>

struct batch_strategy;
struct plugin_model;
struct request;

/* batch_strategy_open - load a library and let it make its state for the model. Blocks.
 * m       the model that the library is asked about; must outlive the strategy
 * ret     NULL if the library has none of the five functions: as in the reference, the model
 *         works without a strategy
 * errors  INTERNAL from the dynamic loader; INVALID_ARG: only some of the functions exist, or
 *         the library brings a second server; the library's own */
struct err *batch_strategy_open(const char *path, struct plugin_model *m,
                                struct batch_strategy **ret);

/* batch_strategy_close - let the library free its state. No batcher uses it any more. NULL is
 * fine. Blocks. */
void batch_strategy_close(struct batch_strategy *s);

/* batch_strategy_begin, batch_strategy_include, batch_strategy_end - the functions of struct
 * batcher_strategy; arg is the strategy. Errors of the library are kept until
 * batch_strategy_report. */
void batch_strategy_begin(void *arg);
bool batch_strategy_include(void *arg, const struct request *r);
void batch_strategy_end(void *arg);

/* batch_strategy_report - log the kept errors. Any thread; no lock is held. */
void batch_strategy_report(struct batch_strategy *s);
