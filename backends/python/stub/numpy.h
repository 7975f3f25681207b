#pragma once

#include "core.h"

/* Tensors as numpy has them: arrays show their layout by __array_struct__, and so do tensors. */

/* Tensor(name, array) - the constructor. */
PyObject *numpy_tensor(PyTypeObject *type, PyObject *args, PyObject *keywords);

/* as_numpy() - an array on the tensor's own bytes; texts are copied. */
PyObject *numpy_of_tensor(PyObject *tensor, PyObject *unused);

/* __array_struct__ - how numpy sees a tensor's bytes where they are. */
PyObject *numpy_layout(PyObject *tensor, void *unused);
