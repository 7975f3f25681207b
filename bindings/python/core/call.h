#pragma once
/* One inference: its request, and the responses that have come. */
#include "core.h"

/* call_start - send a request.
 * args     those of Server.submit, see nereid/_core.pyi
 * returns  a Call; NULL with an exception */
PyObject *call_start(TRITONSERVER_Server *server, PyObject *args);

/* call_wait - wait for the next response.
 * seconds  as timed_until has them; infinity = any time
 * returns  a dict of arrays, None after the last; NULL with an exception: TimeoutError, that of
 *          a signal's handler, the response's error */
PyObject *call_wait(PyObject *call, double seconds);

/* call_is_over - whether all responses were taken. */
bool call_is_over(PyObject *call);

/* call_bury - free what calls have left that ended when nobody looked at them any more. With the
 * GIL. */
void call_bury(void);
