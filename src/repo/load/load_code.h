#pragma once
/* Which libraries a configuration may name: those in the model's directory, and none if the
 * model came from a store. Private to repo/.
 * source  spec/requirements.md MR-67, MR-68, X-03; docs/user/securing-loads.md */
#include "base/err.h"

#include <stdint.h>

struct Inference__ModelConfig;

/* Where a model's files came from. */
enum load_code_from {
    LOAD_CODE_DISK,
    LOAD_CODE_REQUEST, /* a load request, which may not bring libraries */
    LOAD_CODE_STORE,
};

/* load_code_check - refuse custom backends and batching strategies of a store, compiled models of
 * a store or a load request, and operator libraries outside the model's directory. Names in the
 * configuration are relative to that directory and become absolute, so that a backend opens
 * exactly the file that was checked.
 * proto      completed
 * model_dir  the model's directory, which contains the version's files
 * errors     UNSUPPORTED: from there; INVALID_ARG: a name that leads elsewhere; NOT_FOUND */
struct err *load_code_check(struct Inference__ModelConfig *proto, const char *name,
                            const char *model_dir, int64_t version, enum load_code_from from);

/* load_code_settle - find a library that a configuration names: relative to the model's
 * directory, or absolute and below it.
 * ret     absolute, without links; the caller frees it (mem_free)
 * errors  INVALID_ARG: it lies elsewhere; NOT_FOUND */
struct err *load_code_settle(const char *model_dir, const char *file, char **ret);
