#pragma once

#include "keep.h"
#include "model.h"

/* An instance of a model: what one execution needs in addition to the model. */
struct instance {
    struct brun_place place;
    struct model *model;
    struct keep *keep;       /* memory for inputs */
    struct session *session; /* may be shared with other instances: model_leave_session */
};

/* instance_new - make an instance, with its own session unless the configuration lets several
 * share one.
 * ret_instance  owned by the caller: instance_free
 * errors        INVALID_ARG for a GPU instance */
TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance);

/* instance_free - free an instance; NULL and half-built ones are allowed. */
void instance_free(struct instance *instance);
