#pragma once

#include "core.h"

/* Tensors as DLPack has them, the interface by which libraries hand tensors to each other. */

/* to_dlpack() - a capsule that keeps the tensor. */
PyObject *dlpack_of_tensor(PyObject *tensor, PyObject *unused);

/* __dlpack__(...) - the same. */
PyObject *dlpack_asked(PyObject *tensor, PyObject *args, PyObject *keywords);

/* __dlpack_device__() - where the tensor's bytes are. */
PyObject *dlpack_where(PyObject *tensor, PyObject *unused);

/* from_dlpack(name, given) - a tensor on what a capsule, or a tensor of another library, holds. */
PyObject *dlpack_make(PyObject *unused, PyObject *args);
