#pragma once
/* Tensors as NumPy arrays, without a copy: arrays show their memory by their attribute
 * __array_struct__; what has that attribute becomes an array. */
#include "core.h"

enum { ARRAY_MAX_DIMS = 64 };

/* An array that is read. */
struct array {
    TRITONSERVER_DataType datatype;
    uint64_t rank;
    int64_t shape[ARRAY_MAX_DIMS];
    const void *data;
    uint64_t bytes;
    PyObject *owner; /* what keeps `data`; owned */
};

/* array_read - take the memory of an array. Texts, and arrays that are not contiguous, are copied.
 * value    a NumPy array, or (datatype, array of elements of that size)
 * ret      its owner belongs to the caller
 * returns  false with an exception */
bool array_read(PyObject *value, struct array *ret);

/* array_view - make a NumPy array of memory that `owner` keeps.
 * writable  the array's user may write there
 * errors    NULL with an exception: bytes that do not fit the shape, texts that are cut */
PyObject *array_view(PyObject *owner, TRITONSERVER_DataType datatype, const int64_t *shape,
                     uint64_t rank, void *data, uint64_t bytes, bool writable);
