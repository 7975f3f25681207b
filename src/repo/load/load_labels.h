#pragma once
/* Reads the label files that the outputs of a model name. */
#include "base/err.h"

struct labels;
struct model_config;

/* load_labels - read them from the model's directory.
 * ret     an array of config->output_count, NULL for an output without labels; the caller owns
 *         the array and its items
 * errors  INVALID_ARG for a name that leaves the model's directory, or a file that is not a
 *         label file; NOT_FOUND
 * source  spec/model_repository.txt, Repository Layout (MR-18, MR-19) */
struct err *load_labels(const struct model_config *config, const char *model_dir,
                        struct labels ***ret);
