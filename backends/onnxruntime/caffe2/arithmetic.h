#pragma once

#include "step.h"

/* Operators that compute with numbers: element by element, or as matrices. */

step_fn arithmetic_same, arithmetic_alpha, arithmetic_binary, arithmetic_sum, arithmetic_softmax;
step_fn arithmetic_clip, arithmetic_prelu, arithmetic_fc, arithmetic_matmul,
    arithmetic_batch_matmul;
step_fn arithmetic_spatial_bn, arithmetic_lrn, arithmetic_dropout;
