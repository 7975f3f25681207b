#pragma once
/* The states of a model's sequences, from its configuration, and their initial values: zeros, or
 * a file in the model's folder `initial_state`. infer/state.h handles them at run time.
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching.State and InitialState */
#include "base/err.h"

struct model_config;
struct state_plan;

/* sequence_state_plan - make the plan of a checked configuration with sequence_batching. Blocks:
 * reads files.
 * model_dir  the model's directory
 * ret        NULL if the configuration lists no state
 * errors     INVALID_ARG, in the reference's words; NOT_FOUND if a file does not exist;
 *            UNAVAILABLE: no memory */
struct err *sequence_state_plan(const struct model_config *config, const char *model_dir,
                                struct state_plan **ret);
