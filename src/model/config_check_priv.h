#pragma once
/* The parts of config_check_model; each returns the first rule of its part that the message breaks,
 * or NULL. `p` is filled; messages end in the model's name. */
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

/* model_warmup; `full` = the inputs are complete */
struct err *config_check_warmup_rules(const struct Inference__ModelConfig *p, bool full);

/* config_check_file - NULL when a file's name stays below the directory that it belongs in: neither
 * absolute nor with "..".
 * what  the field, for the message */
struct err *config_check_file(const char *model, const char *what, const char *file);
