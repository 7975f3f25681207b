#pragma once

#include "model.h"

/* signature_read_saved - learn the model's inputs and outputs from a SavedModel.
 * meta    its MetaGraphDef
 * errors  INTERNAL when it has no such signature, or a tensor that is none */
TRITONSERVER_Error *signature_read_saved(struct model *model, const TF_Buffer *meta);

/* signature_read_graph - learn them from the configuration, and their types from the graph of a
 * GraphDef.
 * errors  INVALID_ARG for a name that the graph does not have */
TRITONSERVER_Error *signature_read_graph(struct model *model, const struct session *session);

/* signature_free - free what either has made. */
void signature_free(struct model *model);
