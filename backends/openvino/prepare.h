#pragma once

#include "model.h"

/* prepare_graph - make model->graph take and give what the configuration says: data types, and
 * with RESHAPE_IO_LAYERS shapes; with batching its first dimension becomes the batch. Reads the
 * signature again.
 * batch    0: the file's own, -1: any, else this one
 * errors   INTERNAL, with what OpenVINO says */
TRITONSERVER_Error *prepare_graph(struct model *model, int64_t batch);
