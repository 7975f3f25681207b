#pragma once
/* The standard input, output and error of this process. */
#include <stdbool.h>

/* standard_fill - those that are closed lead to /dev/null, so that no file which is opened later
 * gets what is written to them. Before anything is opened.
 * returns  false if the standard output was closed */
bool standard_fill(void);
