#pragma once
/* Chooses the environment variables that the process of an isolated model gets from the server:
 * those that find or tune libraries, and those that the configuration names. The process must
 * not get the server's credentials. Pure. Private to isolate/. */
#include <stdbool.h>

/* isolate_environment_passes - true if a variable is passed to the process.
 * variable  "NAME=value"
 * more      names besides those that always pass, separated by blanks or commas; "X_*" = all
 *           that begin with X_; may be NULL */
bool isolate_environment_passes(const char *variable, const char *more);

/* isolate_environment_new - the variables of `all` that pass, in order, followed by NULL. The
 * caller frees the array (mem_free); the strings are borrowed. */
const char **isolate_environment_new(char *const *all, const char *more);
