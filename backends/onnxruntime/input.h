#pragma once

#include "run.h"

/* input_collect - check the inputs of all items against the model and against each other. Items that
 * do not fit get an error; the others form the batch.
 * errors   for the whole run: no memory */
TRITONSERVER_Error *input_collect(struct run *run);

/* input_bind - make the tensors of the batch: over the request's own memory when there is one request
 * whose contents lie in one piece on SCRATCH_ALIGN bytes, over a copy otherwise. Items whose
 * contents are malformed get an error.
 * errors   for the whole run */
TRITONSERVER_Error *input_bind(struct run *run);

/* input_release - free what input_bind made. */
void input_release(struct run *run);
