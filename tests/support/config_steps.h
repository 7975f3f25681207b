#pragma once
/* Runs the steps of a configuration, from text to the served form, for tests of the steps. */
#include "model/config.h"
#include "model/config_groups.h"
#include "proto/model_config.pb-c.h"

/* config_steps_parse - parse a valid text; free it with config_free_proto. */
Inference__ModelConfig *config_steps_parse(const char *text);

/* config_steps_fill - parse a valid text, guess the backend (the version directory is empty) and
 * fill in defaults. */
Inference__ModelConfig *config_steps_fill(const char *text);

/* config_steps_error - run all steps for model "m". Returns the error's message, valid until the
 * next call, or "". */
const char *config_steps_error(const char *text, const struct config_groups_machine *machine);

/* config_steps_load - run all steps for a valid text; free it with config_unref. */
struct model_config *config_steps_load(const char *text);
