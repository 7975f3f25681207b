#pragma once

#include "session.h"

/* init_ops_run - run the operations that TF_INIT_OPS_FILE lists, one after the other.
 * session  with its graph
 * errors   INVALID_ARG for a file that is not there or is none; an operation that is not there
 *          or fails */
TRITONSERVER_Error *init_ops_run(const struct model *model, const struct session *session);
