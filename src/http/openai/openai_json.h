#pragma once
/* Parts of a request's JSON as text again, for models that read JSON themselves. Worker's thread
 * only. */
#include "base/err.h"

#include <stddef.h>
#include <yyjson.h>

struct openai_json {
    char *text; /* owned; not followed by NUL */
    size_t len;
    size_t charged; /* to the budget */
};

/* openai_json_write - write a value as text.
 * most    bytes that may be needed on the way
 * errors  INVALID_ARG if it holds what is not UTF-8 or no JSON number; UNAVAILABLE if the budget
 *         is spent */
struct err *openai_json_write(yyjson_val *v, size_t most, struct openai_json *ret);

/* openai_json_end - free the text. */
void openai_json_end(struct openai_json *j);
