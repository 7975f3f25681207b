#pragma once
/* The rules between an ensemble and the models of its steps, as they are being served:
 * config_check_model knows the ensemble's own configuration alone. */
#include "base/err.h"

#include <stdbool.h>

struct Inference__ModelConfig;

/* config_steps_find_fn - the complete configuration of a step's model; NULL when it is not
 * known. */
typedef const struct Inference__ModelConfig *config_steps_find_fn(void *owner, const char *model);

/* config_steps_check - that each step fits its model: names, data types, shapes, batch sizes.
 * p              passed config_check_model; has ensemble_scheduling
 * ret_decoupled  a request may have any number of responses, since a step's model is decoupled
 * errors         INVALID_ARG in the reference's words
 * source         spec/model_config_proto.txt, ModelEnsembling (PB-142, PB-143, PB-146) */
struct err *config_steps_check(const struct Inference__ModelConfig *p, config_steps_find_fn *find,
                               void *owner, bool *ret_decoupled);
