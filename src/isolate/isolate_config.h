#pragma once
/* What the process of an isolated model may change of the configuration when it completes it:
 * what the reference takes from a backend, and nothing that makes the server do more for the
 * model than the written configuration says. Private to isolate/. Pure. */
#include "base/err.h"

struct Inference__ModelConfig;

/* isolate_config_take - batch size, inputs, outputs, how requests are batched where nothing is
 * written about that, and whether the model is decoupled.
 * to      changed; also on an error
 * from    spoilt, the caller's to free
 * errors  INVALID_ARG for what is too large, UNSUPPORTED for what an isolated model cannot be */
struct err *isolate_config_take(struct Inference__ModelConfig *to,
                                struct Inference__ModelConfig *from);
