#pragma once
/* The ABI functions between the server and a backend's models and instances, for backends that
 * only keep their own objects there. A backend that links bentry.c implements the functions
 * declared here, and no TRITONBACKEND_* function itself. */
#include "triton/core/tritonbackend.h"

#include <stdbool.h>

struct instance;
struct model;

/* bentry_begin - the server loads the backend, and the versions match. Called once, before any
 * model.
 * ret_runtime  shared by all models, freed by bentry_end; NULL = nothing
 * errors       the backend cannot be used */
TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime);

/* bentry_end - free the runtime; no model is left. NULL is allowed. */
void bentry_end(void *runtime);

/* bentry_uses_gpus - asked after bentry_begin: false = instances without a kind are not put on
 * GPUs.
 * runtime  of bentry_begin */
bool bentry_uses_gpus(void *runtime);

/* model_size, instance_size - sizeof of the backend's own structures. */
extern const size_t model_size, instance_size;

/* model_init - load a model; within TRITONBACKEND_ModelInitialize, on any thread.
 * model    zeroed memory, owned by the caller
 * runtime  of bentry_begin
 * errors   naming the model; model_fini follows */
TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime);

/* model_fini - free what a model holds, also a half-built or zeroed one. */
void model_fini(struct model *model);

/* instance_init - make an instance; within TRITONBACKEND_ModelInstanceInitialize, on any thread,
 * several of one model in parallel.
 * instance  zeroed memory, owned by the caller
 * errors    naming the model; instance_fini follows */
TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle);

/* instance_fini - free what an instance holds, also a half-built one. */
void instance_fini(struct instance *instance);

/* run_requests - answer requests, each with results or its own error.
 * requests  owned by the callee
 * thread    one call at a time for an instance */
void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count);

/* Kinds of instances that a backend refuses, as bits. */
enum {
    BENTRY_ON_GPU = 1 << TRITONSERVER_INSTANCEGROUPKIND_GPU,
    BENTRY_BY_MODEL = 1 << TRITONSERVER_INSTANCEGROUPKIND_MODEL,
};

/* bentry_refuse - refuse an instance that is of one of these kinds.
 * fmt      printf format of the error */
TRITONSERVER_Error *bentry_refuse(TRITONBACKEND_ModelInstance *handle, unsigned kinds,
                                  TRITONSERVER_Error_Code code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
