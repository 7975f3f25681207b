#pragma once

#include "instance.h"
#include "../common/binput.h"

/* One execution: requests become one batch, ONNX Runtime runs it, and its outputs become
 * responses. */

struct output;

struct run {
    struct brun *batch;
    struct instance *instance;
    const struct model *model;

    size_t input_count; /* those that the requests have; the computed ones follow in the arrays */
    struct binput *inputs;
    const struct model_tensor **input_tensors;
    const char **input_names;
    OrtValue **input_values;

    size_t output_count;
    struct output *outputs;
    const char **output_names;
    OrtValue **output_values;
};

/* run_ort - the ONNX Runtime of the session. */
static inline const struct ort *run_ort(const struct run *run)
{
    return run->instance->session->ort;
}
