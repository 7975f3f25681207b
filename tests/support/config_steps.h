#pragma once
/* The way of a configuration from text to what is served, for tests of its steps. */
#include "model/config.h"
#include "model/config_groups.h"
#include "proto/model_config.pb-c.h"

/* config_steps_parse - the message of a text that must be valid; config_free_proto. */
Inference__ModelConfig *config_steps_parse(const char *text);

/* config_steps_fill - parse, guess (the version directory holds nothing) and fill; the text must be
 * valid. */
Inference__ModelConfig *config_steps_fill(const char *text);

/* config_steps_error - go the whole way as model "m"; the error's message, until the next call, or
 * "" when there is none. */
const char *config_steps_error(const char *text, const struct config_groups_machine *machine);

/* config_steps_load - the whole way for a text that must be valid; config_unref. */
struct model_config *config_steps_load(const char *text);
