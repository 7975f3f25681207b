#pragma once

#include "session.h"

/* init_ops_run - run the operations listed in TF_INIT_OPS_FILE, one after the other.
 * session  with its graph
 * errors   INVALID_ARG for a missing or invalid file; an operation that does not exist or fails */
TRITONSERVER_Error *init_ops_run(const struct model *model, const struct session *session);
