#pragma once
/* Headers that become parameters of an inference request: those whose name holds a match of a
 * regular expression. The library of regular expressions is loaded when the first pattern is
 * given. */
#include "base/err.h"

#include <stddef.h>

struct forward;
struct request;

/* forward_new - for a pattern; upper and lower case are the same unless it says (?-i).
 * option   its name, for errors
 * pattern  NULL or "" = none: *ret is NULL
 * errors   INVALID_ARG with the place in the pattern; UNSUPPORTED when the library is not there */
struct err *forward_new(const char *option, const char *pattern, struct forward **ret);

/* forward_add - add the headers that match to the parameters of a request.
 * f        may be NULL: nothing is added
 * headers  name, NUL, value, NUL, and so on: len bytes
 * errors   INVALID_ARG for a name that has a meaning of its own, in upper or lower case;
 *          UNAVAILABLE when the budget is spent. What takes too long to match counts as no match
 * Any thread. */
struct err *forward_add(const struct forward *f, const char *headers, size_t len,
                        struct request *r);

/* forward_free - NULL is fine. */
void forward_free(struct forward *f);
