#pragma once
/* Isolation: a model whose configuration sets ISOLATION to "process" runs its backend, model and
 * instances in a child process. For the layers above, it is a model of a backend whose functions
 * talk to that process. Tensors travel in shared memory. If the process ends, its requests are
 * answered with an error and a new process is started. docs/internals/isolation.md */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct backend_registry;
struct plugin_backend;

/* isolate_backend_new - start the process of a model that shall be isolated, and let it load the
 * backend. Blocks.
 * proto    borrowed for the call
 * ret      the backend for model_new, owned by the model from then on; NULL if the configuration
 *          does not ask for isolation
 * errors   INVALID_ARG for the parameters; those of loading the backend; INTERNAL if no process
 *          can be started */
struct err *isolate_backend_new(const struct backend_registry *r,
                                const struct Inference__ModelConfig *proto, const char *name,
                                const char *model_dir, int64_t version,
                                struct plugin_backend **ret);

/* isolate_group - the group that may read the model's files, if the configuration names a user
 * for its process.
 * ret_named  false: the configuration names no user, and *ret_group is not set
 * errors     INVALID_ARG for the parameters */
struct err *isolate_group(const struct Inference__ModelConfig *proto, bool *ret_named,
                          uint32_t *ret_group);
