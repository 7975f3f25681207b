#pragma once

#include "run.h"

/* output_select - find out which outputs the items want; ONNX Runtime computes only these.
 * errors   for the whole run: no memory. An item that wants an unknown output gets an error. */
TRITONSERVER_Error *output_select(struct run *run);

/* output_is_text - whether an output has strings, which lie on the host. */
bool output_is_text(const struct run *run, size_t index);

/* output_foresee - for a batch of one request: make the outputs whose shape the model declares,
 * so that ONNX Runtime writes directly into their buffers. Only for outputs whose declared shape
 * was right in an earlier run.
 * errors   of the request */
TRITONSERVER_Error *output_foresee(struct run *run);

/* output_as_foreseen - true if the shapes after a run are the foreseen ones. */
bool output_as_foreseen(const struct run *run);

/* output_take_back - undo output_foresee, so that the run can be repeated without it.
 * returns  false if nothing was foreseen, or it cannot be undone */
bool output_take_back(struct run *run);

/* output_write - write the results into the responses of the items without an error, and update
 * the states of sequences.
 * errors   for the whole run */
TRITONSERVER_Error *output_write(struct run *run);

/* output_release - free ONNX Runtime's part of the outputs. */
void output_release(struct run *run);
