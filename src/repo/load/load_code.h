#pragma once
/* Which libraries a configuration may name: those that lie with the model, and none of a model
 * in a store. Private to repo/.
 * source  spec/requirements.md MR-67, MR-68, X-03; docs/user/securing-loads.md */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;

/* load_code_check - refuses custom backends and batching strategies of a store, and libraries of
 * operators from anywhere but the model's directory. Their names are relative to that directory,
 * and become absolute: what was looked at is what a backend opens.
 * proto      completed
 * model_dir  the model's, with the version's files in it
 * is_cloud   it is a copy of what lies in a store
 * errors     UNSUPPORTED: of a store; INVALID_ARG: a name that leads elsewhere; NOT_FOUND */
struct err *load_code_check(struct Inference__ModelConfig *proto, const char *name,
                            const char *model_dir, int64_t version, bool is_cloud);

/* load_code_settle - where a library lies that a configuration names: relative to the model's
 * directory, or absolute and beneath it.
 * ret     absolute, without links; the caller's (mem_free)
 * errors  INVALID_ARG: it lies elsewhere; NOT_FOUND */
struct err *load_code_settle(const char *model_dir, const char *file, char **ret);
