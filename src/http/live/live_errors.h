#pragma once
/* The failures that came last, as JSON, for the live page. */
#include <stddef.h>

struct recent;

/* live_errors_new - {"errors":[[last ms, first ms, how often, "request" or "load", model, reason],
 * ...]}, the newest first; the caller frees it (mem_free). Any thread. */
char *live_errors_new(struct recent *r, size_t *ret_len);
