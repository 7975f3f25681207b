#pragma once
/* Models in archives: directories outside the repositories, which a cloud's service fills for one
 * load each. An archive holds a model, or an ensemble and its models. Their names mean what they
 * mean everywhere: a model of an archive takes no other's place. Private to repo/. Blocks. */
#include "base/err.h"

#include <stdbool.h>

struct Inference__ModelConfig;
struct repo;
struct repo_load;
struct repo_model;
struct source;

/* archive_find - where a model to load from an archive lies: in the archive itself, in the only
 * directory of a model there, or in that of the only ensemble.
 * ret     a reference; NULL if it is a step of an ensemble that the archive does not have
 * errors  INVALID_ARG: the archive is not below the directory for archives, or it is not clear
 *         which model is meant; ALREADY_EXISTS: another model has the name */
struct err *archive_find(struct repo *r, const struct repo_model *m, const struct repo_load *what,
                         struct source **ret);

/* archive_check - whether the models that an ensemble has in its archive are those that serve.
 * proto   of the ensemble
 * errors  ALREADY_EXISTS: one of another place has the name */
struct err *archive_check(struct repo *r, const struct repo_load *what,
                          const struct Inference__ModelConfig *proto);
