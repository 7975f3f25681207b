#pragma once

#include "triton/core/tritonserver.h"

/* Execution environments: Python environments that models bring, as folders or packed. */

struct environments;

struct environments *environments_new(void);

/* environments_free - forget them, and delete what was unpacked. NULL is allowed. */
void environments_free(struct environments *all);

/* environments_find - find an environment's script `activate`, unpacking an archive once.
 * path          a folder, or a .tar.gz
 * ret_activate  owned by the caller: free
 * errors        INTERNAL with the reference's words */
TRITONSERVER_Error *environments_find(struct environments *all, const char *path,
                                      char **ret_activate);
