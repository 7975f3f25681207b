#pragma once

#include "step.h"

/* Operators that move a window over images: convolution and pooling. */

step_fn windows_conv, windows_conv_transpose, windows_max_pool, windows_average_pool;
