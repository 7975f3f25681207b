#pragma once
/* The functions of the ABI between the server and a backend's models and instances, for backends
 * that have no more to do in them than to keep their own. A backend that links bentry.c provides
 * what is declared here, and nothing of TRITONBACKEND_* itself. */
#include "triton/core/tritonbackend.h"

struct instance;
struct model;

/* bentry_begin - the server loads the backend, whose interface it has. Once; no model is there yet.
 * ret_runtime  what all models share, ended by bentry_end; NULL = nothing
 * errors       the backend cannot be used */
TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime);

/* bentry_end - no model is left. NULL is allowed. */
void bentry_end(void *runtime);

/* model_new, model_free, instance_new, instance_free, run_requests - as the headers of the
 * backend say. Any thread; one model's instances are made side by side. */
TRITONSERVER_Error *model_new(TRITONBACKEND_Model *handle, struct model **ret_model);
void model_free(struct model *model);
TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance);
void instance_free(struct instance *instance);
void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count);

/* bentry_runtime - what bentry_begin gave, for model_new. */
TRITONSERVER_Error *bentry_runtime(TRITONBACKEND_Model *handle, void **ret_runtime);
