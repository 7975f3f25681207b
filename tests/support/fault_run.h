#pragma once
/* Plays a scenario repeatedly; each time another fault point fails. */
#include "base/err.h"

/* A scenario frees everything that it made, also on failure. It returns the error, or NULL on
 * success. */
typedef struct err *fault_scenario(void *arg);

/* fault_run - play the scenario without a fault, then with its first, second, ... fault point
 * failing. The test fails if the scenario fails without a fault, if a fault gives no error, or
 * if descriptors or charged bytes are left. The leak checker finds memory that is left.
 * returns  the number of fault points */
long fault_run(fault_scenario *scenario, void *arg);
