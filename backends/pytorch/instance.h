#pragma once

#include "model.h"

/* An instance of a model: what one execution needs in addition to the model. */
struct instance {
    struct brun_place place;
    struct model *model;
    struct libtorch_module *own; /* NULL if it uses the model's module */
    bool took;                   /* the model's module alone */
    struct libtorch_call *call;
};
