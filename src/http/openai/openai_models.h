#pragma once
/* GET /v1/models and /v1/models/NAME: the models that are served in OpenAI's form. Worker's thread
 * only. */
#include "os/clock.h"

#include <stddef.h>

struct http_exchange;

/* openai_models_list - answer with all of them.
 * since  told as the time at which each was made */
void openai_models_list(struct http_exchange *x, time_ns since);

/* openai_models_tell - answer with one, by its name of len bytes. */
void openai_models_tell(struct http_exchange *x, const char *name, size_t len, time_ns since);
