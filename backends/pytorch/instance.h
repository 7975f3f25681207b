#pragma once

#include "../common/bcuda.h"
#include "model.h"

/* An instance of a model: what one execution needs in addition to the model. */
struct instance {
    struct brun_place place;
    struct model *model;
    struct model_copy *copy;
    struct libtorch_call *call;
    struct bcuda *cuda; /* NULL on the CPU */
};
