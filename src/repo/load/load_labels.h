#pragma once
/* The label files that the outputs of a model name. */
#include "base/err.h"

struct labels;
struct model_config;

/* load_labels - read them from the model's directory.
 * ret     an array of config->output_count, NULL where an output has no labels; the caller's, as
 *         what it points to
 * errors  INVALID_ARG for a name that leaves the model's directory, or a file that is no label
 *         file; NOT_FOUND
 * source  spec/model_repository.txt, Repository Layout (MR-18, MR-19) */
struct err *load_labels(const struct model_config *config, const char *model_dir,
                        struct labels ***ret);
