#pragma once
/* Guesses the backend of a model whose configuration names none. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;

/* config_guess_wanted - true if config_guess_backend may change the message, because it names no
 * backend. */
bool config_guess_wanted(const struct Inference__ModelConfig *proto);

/* config_guess_backend - set backend, platform and default_model_filename from the names of the
 * definition files, if the message leaves them out. Nothing else is guessed. Fields that are set
 * stay; a message that names a platform or another backend is not changed.
 * model_name  the directory's name; as "<anything>.<backend>" it names the backend if nothing
 *             else does
 * entries     names in a version's directory; directories end in '/'; may be empty
 * errors      INVALID_ARG when nothing fits
 * source      spec/model_configuration.txt, Generated Model Configuration;
 *             spec/model_repository.txt, default names */
struct err *config_guess_backend(struct Inference__ModelConfig *proto, const char *model_name,
                                 const char *const *entries, size_t count);
