#pragma once
/* The interface that clients of OpenAI call, for models whose configuration says how they serve
 * it (model/config_openai.h). docs/user/openai.md */
#include "http/http_service.h"

extern const struct http_service openai_service;
