#pragma once
/* Isolation: a model whose configuration says ISOLATION "process" runs its backend, model and
 * instances in a child process. To the layers above it is a model like others, of a backend
 * whose entry points speak with that process; tensors travel in shared memory. When the process
 * ends, what it had is answered with an error and another one is started.
 * docs/internals/isolation.md */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct backend_registry;
struct plugin_backend;

/* isolate_backend_new - for a model that is to be isolated: start its process, and let that load
 * the backend. Blocks.
 * proto    borrowed for the call ret the backend to give to model_new, the model's from then on;
 *          NULL when the configuration does not ask for isolation
 * errors   INVALID_ARG for the parameters; what loading the backend says; INTERNAL when no
 *          process can be started */
struct err *isolate_backend_new(const struct backend_registry *r,
                                const struct Inference__ModelConfig *proto, const char *name,
                                const char *model_dir, int64_t version,
                                struct plugin_backend **ret);

/* isolate_group - which group reads the files of a model whose configuration names the user of
 * its process.
 * ret_named  false: it names none, *ret_group is not set
 * errors     INVALID_ARG for the parameters */
struct err *isolate_group(const struct Inference__ModelConfig *proto, bool *ret_named,
                          uint32_t *ret_group);
