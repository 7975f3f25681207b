#pragma once

#include "session.h"

/* An instance of a model: what one execution needs in addition to the model. */
struct instance {
    struct brun_place place;
    struct model *model;
    struct session *session;
    OrtRunOptions *run_options;
};
