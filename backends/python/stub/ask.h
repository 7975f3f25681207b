#pragma once

#include "core.h"

/* What a model asks of the server: calls and requests to other models. Functions that Python
 * calls, but for ask_room. */

/* call(op, *args) - ask the server; args are int, float, str or bytes. */
PyObject *ask_call(PyObject *self, PyObject *args);

/* tell(op, *args) - the same without an answer. */
PyObject *ask_tell(PyObject *self, PyObject *args);

/* infer(request, decoupled) - send a nested request; returns its id, for nested(). */
PyObject *ask_infer(PyObject *self, PyObject *args);

/* nested(id) - wait for a response: (response or None, whether it is the last). */
PyObject *ask_nested(PyObject *self, PyObject *args);

/* forget(id) - nobody calls nested(id) again. */
PyObject *ask_forget(PyObject *self, PyObject *args);

/* ask_room - ask for a place in the shared memory.
 * returns  its offset; 0 with an exception */
uint64_t ask_room(uint64_t bytes);
