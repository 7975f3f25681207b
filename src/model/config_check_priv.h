#pragma once
/* The parts of config_check_model. Each returns the first broken rule of its part, or NULL. `p`
 * has its defaults; messages end in the model's name. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;

/* inputs, outputs, batch_input, batch_output */
struct err *config_check_io_rules(const struct Inference__ModelConfig *p);

/* dynamic_batching, sequence_batching */
struct err *config_check_sched_rules(const struct Inference__ModelConfig *p);

/* sequence_batching: the files of initial states */
struct err *config_check_sched_state_files(const struct Inference__ModelConfig *p);

/* ensemble_scheduling: the steps, and that data flows from every input to every output */
struct err *config_check_ensemble_rules(const struct Inference__ModelConfig *p);

/* model_warmup; `full` = all inputs are known */
struct err *config_check_warmup_rules(const struct Inference__ModelConfig *p, bool full);

/* config_check_file - NULL if a file name stays below its directory: not absolute and without
 * "..".
 * what  the field, for the message */
struct err *config_check_file(const char *model, const char *what, const char *file);
