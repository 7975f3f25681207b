#pragma once
/* A request as Python describes it. Each function returns false with an exception. */
#include "core.h"

/* fill_inputs - add a dict of arrays.
 * kept  a list that gains what the inputs lie in; it must live until the request is released */
bool fill_inputs(TRITONSERVER_InferenceRequest *request, PyObject *inputs, PyObject *kept);

/* fill_outputs - ask for these outputs; None = all. */
bool fill_outputs(TRITONSERVER_InferenceRequest *request, PyObject *outputs);

/* fill_settings - None, or (id, sequence, flags, priority, timeout in us, parameters or None);
 * sequence: a number or a text, 0 = none. */
bool fill_settings(TRITONSERVER_InferenceRequest *request, PyObject *settings);
