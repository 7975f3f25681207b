#pragma once
/* Derives the settings of a batcher from a model's configuration. */
#include "base/err.h"

struct batch_strategy;
struct batcher;
struct model_config;

/* batcher_setup_new - make the batcher that the configuration asks for.
 * strategy  the model's, which a dynamic batcher asks; borrowed as long as the batcher lives;
 *           NULL = none */
struct err *batcher_setup_new(const struct model_config *config, struct batch_strategy *strategy,
                              struct batcher **ret);
