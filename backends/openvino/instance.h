#pragma once

#include "model.h"

/* An instance of a model: what one execution needs in addition to the shared compiled model. */
struct instance {
    struct brun_place place;
    struct model *model;
    ov_infer_request_t *request;
    ov_tensor_t **own; /* the infer request's own tensor of each output */
    bool *borrows;     /* per output: the infer request writes into a response's memory */
};

/* instance_new - make an instance.
 * ret_instance  owned by the caller: instance_free
 * errors        INVALID_ARG for a GPU instance */
TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance);

/* instance_free - free an instance; NULL and half-built ones are allowed. */
void instance_free(struct instance *instance);
