#pragma once
/* One execution of a model that is a function. */
#include "core.h"

#include "triton/core/tritonbackend.h"

/* execute_batch - answer requests with what a function of Python returns, and release them. The
 * function gets a list of dicts of arrays and returns a list: for each request a dict of arrays, a
 * pair (code, message), or an iterator of such, whose responses are sent one by one. Arrays of
 * inputs are views: a request is released when none of its own is left. */
void execute_batch(PyObject *function, TRITONBACKEND_ModelInstance *instance,
                   TRITONBACKEND_Request **requests, uint32_t count);
