#pragma once
/* Which backend serves a model whose configuration does not say so. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;

/* config_guess_wanted - whether config_guess_backend may change a message: it leaves out which
 * backend serves it. */
bool config_guess_wanted(const struct Inference__ModelConfig *proto);

/* config_guess_backend - set backend, platform and default_model_filename from the names of
 * definitions, in a message that leaves them out. Nothing else is guessed; what is set stays, and a
 * message that names a platform or a backend of its own is done.
 * model_name  the directory's name, which may tell a backend as "<anything>.<backend>" when nothing
 *             else does
 * entries     names in the version directory that is looked at; a directory's name ends in '/'; may
 *             be empty
 * errors      INVALID_ARG when nothing fits
 * source      spec/model_configuration.txt, Generated Model Configuration;
 *             spec/model_repository.txt, default names */
struct err *config_guess_backend(struct Inference__ModelConfig *proto, const char *model_name,
                                 const char *const *entries, size_t count);
