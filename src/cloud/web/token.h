#pragma once
/* Bearer tokens as the value of a lease: text, or NULL if requests need none. */
#include "base/err.h"

struct lease_fresh;

/* token_copy - for lease_kind. */
void *token_copy(const void *value);

/* token_read - parse the answer of an OAuth endpoint: access_token and expires_in.
 * errors  UNAVAILABLE: it has no token */
struct err *token_read(const char *json, struct lease_fresh *ret);
