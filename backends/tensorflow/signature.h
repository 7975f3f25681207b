#pragma once

#include "model.h"

/* signature_read_saved - read the model's inputs and outputs from a SavedModel.
 * meta    its MetaGraphDef
 * errors  INTERNAL if it has no such signature, or an entry is not a tensor */
TRITONSERVER_Error *signature_read_saved(struct model *model, const TF_Buffer *meta);

/* signature_read_graph - read them from the configuration, and their types from the graph of a
 * GraphDef.
 * errors  INVALID_ARG for a name that does not exist in the graph */
TRITONSERVER_Error *signature_read_graph(struct model *model, const struct session *session);

/* signature_free - free what either function made. */
void signature_free(struct model *model);
