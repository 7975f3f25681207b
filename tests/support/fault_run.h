#pragma once
/* Playing a scenario with each of its fault points failing in turn. */
#include "base/err.h"

/* A scenario frees what it made, also when a step fails; it returns the error that it met, NULL
 * when all went well. */
typedef struct err *fault_scenario(void *arg);

/* fault_run - play the scenario without a fault, then with its first, second, ... fault point
 * failing. Fails the test when it does not succeed without a fault, when a fault goes unnoticed
 * (returned: no error), or when descriptors or charged bytes are left over. Memory left over is the
 * leak checker's.
 * returns  how many fault points it has */
long fault_run(fault_scenario *scenario, void *arg);
