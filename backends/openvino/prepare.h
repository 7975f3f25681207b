#pragma once

#include "model.h"

/* prepare_graph - change model->graph to the configuration's data types, and with
 * RESHAPE_IO_LAYERS to its shapes; with batching, the first dimension becomes the batch. Reads
 * the signature again.
 * batch    0: the file's own, -1: any, else this one
 * errors   INTERNAL, with OpenVINO's message */
TRITONSERVER_Error *prepare_graph(struct model *model, int64_t batch);
