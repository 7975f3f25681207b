#pragma once
/* Running requests of an ensemble: each step is an ordinary request to its model, whose inputs refer to the tensors where they lie.
 *
 * A step's response takes the request further on the thread that delivers it: after Execute has returned, or, where the backend answers
 * outside of Execute, inside its ResponseSend, which then only queues the next step. Steps that one thread has to submit at a time go
 * to their models together (serve/submit.h), so that what arrived as a batch stays one. */
#include "base/err.h"
#include "base/list.h"

#include <stdint.h>

struct ensemble_run_plan;
struct model_config;
struct serve_table;
struct serve_version;

/* Ensembles within ensembles, at most: a chain that is longer was not there when they were loaded. */
#define ENSEMBLE_RUN_MAX_DEPTH 64u

/* ensemble_run_plan_new - what a version of an ensemble needs to run requests.
 * config  borrowed, as long as the plan lives
 * table   where its steps' models are looked up */
struct ensemble_run_plan *ensemble_run_plan_new(const struct model_config *config,
                                                struct serve_table *table);

/* ensemble_run_plan_free - no request of the version is left. NULL is fine. */
void ensemble_run_plan_free(struct ensemble_run_plan *plan);

/* ensemble_run_submit - take over requests for an ensemble (v->ensemble), by queue_node. As for any model they are answered through
 * their respond callback, whatever happens. No lock is held. */
void ensemble_run_submit(struct serve_version *v, struct list *requests);
