#pragma once
/* Makes sure that only one server library is in the process. A plug-in that brings its own one
 * would call that library with objects of this one. */
#include "base/err.h"

/* alone_check - call it after a plug-in was opened.
 * kind, name  of the plug-in, for the error
 * errors      INVALID_ARG that names the second library */
struct err *alone_check(const char *kind, const char *name);
