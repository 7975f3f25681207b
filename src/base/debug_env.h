#pragma once
/* Variables of the environment with which tests of clients slow a server down
 * (docs/user/debugging.md). */
#include <stdint.h>

/* debug_env_number - the value of a variable; 0 when it is not set, or is no number (which is
 * logged). */
uint64_t debug_env_number(const char *name);
