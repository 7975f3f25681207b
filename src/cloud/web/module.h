#pragma once
/* libnereid_cloud.so, loaded when it is asked for first and never closed. */
#include "base/err.h"

struct cloud_abi;

/* module_get - the table of the module. Any thread.
 * errors  INTERNAL when it is not there, or is of another version */
struct err *module_get(const struct cloud_abi **ret);
