#pragma once

#include "model.h"

/* An instance of a model: what one execution needs in addition to the shared session. */
struct instance {
    struct brun_place place;
    struct model *model;
    OrtRunOptions *run_options;
};
