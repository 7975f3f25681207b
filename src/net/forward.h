#pragma once
/* Forwards headers as parameters of an inference request: those whose name matches a regular
 * expression. The library of regular expressions is loaded with the first pattern. */
#include "base/err.h"

#include <stddef.h>

struct forward;
struct request;

/* forward_new - compile a pattern; upper and lower case are equal unless it says (?-i).
 * option   the option's name, for errors
 * pattern  NULL or "" = no pattern: *ret is NULL
 * errors   INVALID_ARG with the position in the pattern; UNSUPPORTED if the library is missing */
struct err *forward_new(const char *option, const char *pattern, struct forward **ret);

/* forward_add - add the matching headers to the parameters of a request.
 * f        NULL = add nothing
 * headers  name, NUL, value, NUL, and so on: len bytes
 * errors   INVALID_ARG for a name with a special meaning, in upper or lower case; UNAVAILABLE if
 *          the budget is spent. A match that takes too long counts as no match
 * Any thread. */
struct err *forward_add(const struct forward *f, const char *headers, size_t len,
                        struct request *r);

/* forward_free - NULL is fine. */
void forward_free(struct forward *f);
