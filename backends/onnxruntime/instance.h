#pragma once

#include "model.h"
#include "../common/brun.h"

/* An instance of a model: what one execution needs in addition to the shared session. */
struct instance {
    struct brun_place place;
    struct model *model;
    OrtRunOptions *run_options;
};

/* instance_new - make an instance.
 * ret_instance  owned by the caller: instance_free
 * errors        UNSUPPORTED for a GPU instance */
TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance);

/* instance_free - free an instance; NULL and half-built ones are allowed. */
void instance_free(struct instance *instance);
