#pragma once

#include "step.h"

/* Operators that move elements, or change shapes or data types. */

step_fn shapes_concat, shapes_split, shapes_reshape, shapes_transpose, shapes_to_last;
step_fn shapes_to_first, shapes_flatten, shapes_to_vector, shapes_squeeze, shapes_expand;
step_fn shapes_slice, shapes_gather, shapes_resize, shapes_cast;
