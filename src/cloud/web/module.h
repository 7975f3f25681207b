#pragma once
/* Loads libnereid_cloud.so when it is first needed; it is never closed. */
#include "base/err.h"

struct cloud_abi;

/* module_get - the function table of the module. Any thread.
 * errors  INTERNAL if the module is missing or has another version */
struct err *module_get(const struct cloud_abi **ret);
