#pragma once
/* Errors on the terminal. */
#include "base/err.h"

#include <stdbool.h>

/* err_tell - print "who: message" to the standard error and free e; a control character, which a
 * terminal might obey, is printed as a blank. NULL prints nothing. Returns whether there is one. */
bool err_tell(const char *who, struct err *e);
