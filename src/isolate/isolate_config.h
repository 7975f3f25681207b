#pragma once
/* What the process of an isolated model may change in the configuration when it completes it:
 * what the reference lets a backend change, and nothing that makes the server do more work than
 * the written configuration says. Private to isolate/. Pure. */
#include "base/err.h"

struct Inference__ModelConfig;

/* isolate_config_take - take over the batch size, inputs, outputs, whether the model is
 * decoupled, and how requests are batched if nothing is written about that.
 * to      changed, even on an error
 * from    changed too; the caller frees it
 * errors  INVALID_ARG for something too large, UNSUPPORTED for something that an isolated model
 *         cannot have */
struct err *isolate_config_take(struct Inference__ModelConfig *to,
                                struct Inference__ModelConfig *from);
