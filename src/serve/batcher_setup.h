#pragma once
/* From a model's configuration to the settings of its batcher. */
#include "base/err.h"

struct batcher;
struct model_config;

/* batcher_setup_new - the batcher that the configuration asks for. */
struct err *batcher_setup_new(const struct model_config *config, struct batcher **ret);
