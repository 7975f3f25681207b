#pragma once
/* Custom batching strategies: a library of a model, or of its backend, that decides beside the
 * dynamic batcher which requests share a batch. Opened once a version and closed with it, so
 * that the file can be replaced.
 * source  include/triton/core/tritonbackend.h, "Custom batching"; docs/internals/batcher.md */
#include "base/err.h"

#include <stdbool.h>

struct batch_strategy;
struct plugin_model;
struct request;

/* batch_strategy_open - load a library, and have it make what it keeps for the model. Blocks.
 * m       what the library is told of; must outlive the strategy
 * ret     NULL where the library has none of the five functions: as in the reference, the model
 *         goes without
 * errors  INTERNAL in the loader's words; INVALID_ARG: it has some of the functions, not all, or
 *         brings a second server; the library's own */
struct err *batch_strategy_open(const char *path, struct plugin_model *m,
                                struct batch_strategy **ret);

/* batch_strategy_close - the library frees what it made. No batcher asks it any more. NULL is
 * fine. Blocks. */
void batch_strategy_close(struct batch_strategy *s);

/* batch_strategy_begin, batch_strategy_include, batch_strategy_end - as a batcher asks (struct
 * batcher_strategy); arg is the strategy. What the library says against a batch is kept until
 * batch_strategy_report. */
void batch_strategy_begin(void *arg);
bool batch_strategy_include(void *arg, const struct request *r);
void batch_strategy_end(void *arg);

/* batch_strategy_report - log what was kept. Any thread; no lock is held. */
void batch_strategy_report(struct batch_strategy *s);
