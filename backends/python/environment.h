#pragma once

#include "triton/core/tritonserver.h"

/* Execution environments: Python environments that models bring, as folders or packed. A packed one
 * is unpacked once for all models that name it, and deleted with the last of them. */

struct environments;
struct environment;

struct environments *environments_new(void);

/* environments_free - forget them; all of them were given back. NULL is allowed. */
void environments_free(struct environments *all);

/* environments_take - find an environment, unpacking an archive that nobody uses yet.
 * path     a folder, or a .tar.gz
 * ret      give it back with environments_give
 * errors   INTERNAL with the reference's words */
TRITONSERVER_Error *environments_take(struct environments *all, const char *path,
                                      struct environment **ret);

/* environments_give - give it back. NULL is allowed. */
void environments_give(struct environments *all, struct environment *one);

/* environment_activate - the path of its script `activate`; lives as long as the environment. */
const char *environment_activate(const struct environment *one);
