#pragma once

#include "session.h"

/* Opens SavedModels on GPUs other than the first. TensorFlow's own loader takes no device. */

/* saved_open - read a SavedModel into the session's graph, on the session's GPU; then restore its
 * variables and initialize it as TensorFlow's loader does.
 * session   with a graph that is empty; its handle is set
 * ret_meta  NULL, or the MetaGraphDef, owned by the caller: TF_DeleteBuffer
 * errors    INTERNAL naming the model */
TRITONSERVER_Error *saved_open(const struct model *model, const TF_SessionOptions *options,
                               struct session *session, TF_Buffer **ret_meta);
