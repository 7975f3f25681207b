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

/* instance_new_request - replace the infer request by a new one, whose variables are as the
 * model's file has them. The C interface cannot reset them. */
TRITONSERVER_Error *instance_new_request(struct instance *instance);
