#pragma once
/* Which variables of the server's environment the process of an isolated model gets: what finds
 * libraries and tunes them, and what the configuration names; credentials of the server are none
 * of the model's business. Pure. Private to isolate/. */
#include <stdbool.h>

/* isolate_environment_passes - whether a variable passes.
 * variable  "NAME=value"
 * more      names besides those that always pass, with blanks or commas between them; "X_*" =
 *           all that begin so; may be NULL */
bool isolate_environment_passes(const char *variable, const char *more);

/* isolate_environment_new - those of `all` that pass, in order, NULL behind the last; the
 * caller's (mem_free), the strings borrowed. */
const char **isolate_environment_new(char *const *all, const char *more);
