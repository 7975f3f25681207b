#pragma once
/* Running requests of an ensemble: each step is an ordinary request to its model, whose inputs
 * refer to the tensors where they lie.
 *
 * A step's response takes the request further on the thread that delivers it: after Execute has
 * returned, or, where the backend answers outside of Execute, inside its ResponseSend, which
 * then only queues the next step. Steps that one thread has to submit at a time go to their
 * models together (serve/submit.h), so that what arrived as a batch stays one. */
#include "serve/features.h"

/* Ensembles within ensembles, at most: a chain that is longer was not there when they were
 * loaded. */
#define ENSEMBLE_RUN_MAX_DEPTH 64u

/* Schedules versions that are ensembles, which have no backend: it takes over what it is asked
 * to accept, and nothing is ever queued. Requests look the versions of their steps up in the
 * table of the version. */
extern const struct feature ensemble_run_feature;
