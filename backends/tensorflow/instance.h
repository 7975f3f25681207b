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
