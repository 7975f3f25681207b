#pragma once

#include "run.h"

/* output_select - find out which outputs the items want; they are what ONNX Runtime computes.
 * errors   for the whole run: no memory. An item that asks for something unknown gets an error. */
TRITONSERVER_Error *output_select(struct run *run);

/* output_foresee - for a batch of one request, make the outputs whose shape the model declares, and
 * let ONNX Runtime write straight into their buffers. Only outputs whose declaration was right in
 * an earlier run.
 * errors   of the request */
TRITONSERVER_Error *output_foresee(struct run *run);

/* output_as_foreseen - tell whether the shapes after a run are the ones foreseen. */
bool output_as_foreseen(const struct run *run);

/* output_take_back - undo output_foresee, so that the run can be repeated without it.
 * returns  false when nothing was foreseen, or it cannot be undone */
bool output_take_back(struct run *run);

/* output_write - put the results into the responses of the items without an error, and update the
 * states of sequences.
 * errors   for the whole run */
TRITONSERVER_Error *output_write(struct run *run);

/* output_release - free ONNX Runtime's part of the outputs. */
void output_release(struct run *run);
