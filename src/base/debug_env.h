#pragma once
/* Environment variables with which tests of clients slow the server down
 * (docs/user/debugging.md). */
#include <stdint.h>

/* debug_env_number - the value of a variable; 0 if it is not set, or not a number (which is
 * logged). */
uint64_t debug_env_number(const char *name);
