#pragma once
/* The ABI functions between the server and a backend's models and instances, for backends that
 * only keep their own objects there. A backend that links bentry.c implements the functions
 * declared here, and no TRITONBACKEND_* function itself. */
#include "triton/core/tritonbackend.h"

struct instance;
struct model;

/* bentry_begin - the server loads the backend, and the versions match. Called once, before any
 * model.
 * ret_runtime  shared by all models, freed by bentry_end; NULL = nothing
 * errors       the backend cannot be used */
TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime);

/* bentry_end - free the runtime; no model is left. NULL is allowed. */
void bentry_end(void *runtime);

/* model_new, model_free, instance_new, instance_free, run_requests - see the headers of the
 * backend. Any thread; instances of one model may be made in parallel. */
TRITONSERVER_Error *model_new(TRITONBACKEND_Model *handle, struct model **ret_model);
void model_free(struct model *model);
TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance);
void instance_free(struct instance *instance);
void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count);

/* bentry_runtime - the result of bentry_begin, for model_new. */
TRITONSERVER_Error *bentry_runtime(TRITONBACKEND_Model *handle, void **ret_runtime);
