#pragma once
/* The backend "custom": models that are libraries with the first generation's interface,
 * include/triton/core/custom.h. */
#include "plugin/backend.h"

extern const struct backend_builtin custom_backend;
