#pragma once
/* One server library in the process: a plug-in that brings its own would call into that one,
 * with objects of this one. */
#include "base/err.h"

/* alone_check - after a plug-in was opened.
 * kind, name  of the plug-in, for the message
 * errors      INVALID_ARG that names the other library */
struct err *alone_check(const char *kind, const char *name);
