#pragma once
/* Runs requests of an ensemble. Each step is an ordinary request to its model; its inputs refer
 * to the tensors where they already lie.
 *
 * The thread that delivers a step's response also starts the next steps: after Execute returned,
 * or inside ResponseSend if the backend answers outside of Execute; there the next step is only
 * queued. Steps that a thread has to submit at one time are submitted together (serve/submit.h),
 * so requests that arrived as a batch stay a batch. */
#include "serve/features.h"

/* The deepest nesting of ensembles. A deeper chain did not exist when the ensembles were loaded. */
#define ENSEMBLE_RUN_MAX_DEPTH 64u

/* The scheduler of versions that are ensembles, which have no backend. Its `accept` takes every
 * request, so nothing is ever queued. Requests look up the versions of their steps in the table
 * of the version. */
extern const struct feature ensemble_run_feature;
