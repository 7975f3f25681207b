#pragma once

#include "step.h"

/* Operators that move a window over images. */

step_fn windows_conv, windows_conv_transpose, windows_max_pool, windows_average_pool;
