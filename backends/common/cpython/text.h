#pragma once
/* Elements of tensors of type BYTES. */
#include "cpython.h"

#include <stdbool.h>

/* text_bytes - an element as bytes: bytes as they are, others as str() says, in UTF-8.
 * subclasses  those of bytes are bytes, too: numpy.bytes_ is one
 * returns     a new reference; NULL with an exception */
PyObject *text_bytes(PyObject *item, bool subclasses);
