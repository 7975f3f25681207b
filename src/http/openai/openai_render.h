#pragma once
/* The messages of a chat: whether they are some, and as one text for models that go on from a text.
 * Pure. */
#include "base/err.h"

#include <yyjson.h>

struct strbuf;

/* openai_render_check - whether this is a list of messages, each with a role.
 * errors  INVALID_ARG */
struct err *openai_render_check(yyjson_val *messages);

/* openai_render - append messages that were checked: "ROLE: CONTENT" a line each, and "assistant:"
 * at the end.
 * errors  INVALID_ARG: a content is no text */
struct err *openai_render(yyjson_val *messages, struct strbuf *to);
