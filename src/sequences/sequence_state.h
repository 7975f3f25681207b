#pragma once
/* What states the sequences of a model have, by its configuration, and how they begin: zeros, or
 * a file of the model's folder `initial_state`. What becomes of them is infer/state.h's.
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching.State and InitialState */
#include "base/err.h"

struct model_config;
struct state_plan;

/* sequence_state_plan - of a checked configuration with sequence_batching. Blocks: reads files.
 * model_dir  the model's directory
 * ret        NULL when it lists no state
 * errors     INVALID_ARG, in the reference's words; NOT_FOUND when a file is not there;
 *            UNAVAILABLE: no memory */
struct err *sequence_state_plan(const struct model_config *config, const char *model_dir,
                                struct state_plan **ret);
