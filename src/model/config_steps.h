#pragma once
/* The rules between an ensemble and the models of its steps. config_check_model checks only the
 * ensemble's own configuration. */
#include "base/err.h"

#include <stdbool.h>

struct Inference__ModelConfig;

/* config_steps_find_fn - the complete configuration of a step's model; NULL if it is not known. */
typedef const struct Inference__ModelConfig *config_steps_find_fn(void *owner, const char *model);

/* What the error says of a step that joins answers of a decoupled model with something else. */
extern const char config_steps_mixed[];

/* config_steps_check - check that each step fits its model: names, data types, shapes, batch
 * sizes.
 * p              has passed config_check_model; has ensemble_scheduling
 * ret_decoupled  true if a step's model is decoupled, so that a request may have any number of
 *                responses
 * errors         INVALID_ARG in the reference's words
 * source         spec/model_config_proto.txt, ModelEnsembling (PB-142, PB-143, PB-146) */
struct err *config_steps_check(const struct Inference__ModelConfig *p, config_steps_find_fn *find,
                               void *owner, bool *ret_decoupled);
