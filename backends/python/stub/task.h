#pragma once

#include "core.h"

/* What the server gives a stub to do, and what comes of it: functions that Python calls. */

/* take() - the next thing to do: a list of requests, or (kind, texts). */
PyObject *task_take(PyObject *self, PyObject *unused);

/* answer(requests, responses) - the requests were executed; responses: a list as long, or None. */
PyObject *task_answer(PyObject *self, PyObject *args);

/* check(requests, responses) - what may be returned was; counts the responses. */
PyObject *task_check(PyObject *self, PyObject *args);

/* fail(requests, text) - none of the requests that are open is answered but with this. */
PyObject *task_fail(PyObject *self, PyObject *args);

/* result(well, text) - what came of completing, initializing or finalizing. */
PyObject *task_result(PyObject *self, PyObject *args);
