#pragma once
/* From a model's configuration to the settings of its batcher. */
#include "base/err.h"

struct batch_strategy;
struct batcher;
struct model_config;

/* batcher_setup_new - the batcher that the configuration asks for.
 * strategy  of the model, which a dynamic batcher asks; borrowed for as long as the batcher
 *           lives; NULL = none */
struct err *batcher_setup_new(const struct model_config *config, struct batch_strategy *strategy,
                              struct batcher **ret);
