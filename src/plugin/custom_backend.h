#pragma once
/* The backend "custom": models whose definition is a library of the first generation's
 * interface, include/triton/core/custom.h. */
#include "plugin/backend.h"

extern const struct backend_builtin custom_backend;
