#pragma once
/* Where an array's elements lie, as NumPy says it and is told it: by the attribute
 * __array_struct__. Nothing of NumPy is linked. */
#include "cpython.h"

#include "triton/core/tritonserver.h"

#include <stdbool.h>
#include <stdint.h>

/* What NumPy calls PyArrayInterface. */
struct layout {
    int two;
    int rank;
    char kind;
    int item_bytes;
    int flags;
    Py_ssize_t *shape, *strides;
    void *data;
    PyObject *description; /* a dtype, for instance; borrowed */
};

enum {
    LAYOUT_CONTIGUOUS = 1,
    LAYOUT_ALIGNED = 0x100,
    LAYOUT_NATIVE = 0x200,
    LAYOUT_WRITABLE = 0x400,
    LAYOUT_DESCRIBED = 0x800 /* by `description` */
};

/* How NumPy calls a datatype. It has none for BF16: that is the number of the same bits. */
struct layout_type {
    char kind;
    uint8_t bytes; /* of an element; 0 = none, or of any size */
};
enum { LAYOUT_TYPES = TRITONSERVER_TYPE_BF16 + 1 };
extern const struct layout_type layout_types[LAYOUT_TYPES]; /* by TRITONSERVER_DataType */

/* layout_datatype - the datatype of numbers; TRITONSERVER_TYPE_INVALID = none. */
TRITONSERVER_DataType layout_datatype(const struct layout *layout);

/* layout_ask - the layout of an array.
 * ret_layout  as long as the capsule that is returned, a new reference
 * errors      NULL with an exception */
PyObject *layout_ask(PyObject *array, struct layout **ret_layout);

/* layout_of - the layout of an array that can be read where it lies.
 * flags      that the array has to have
 * kinds      of elements that it must not have
 * make       makes such an array of another one
 * ret_array  `given`, or what was made of it; owned by the caller
 * returns    as layout_ask; NULL without an exception: what was made is not such an array either */
PyObject *layout_of(PyObject *given, int flags, const char *kinds, PyObject *make,
                    PyObject **ret_array, struct layout **ret_layout);

/* layout_set - describe an array of a datatype with a size, which is in one piece.
 * sizes  room for twice as many as the shape has; they belong to the layout */
void layout_set(struct layout *layout, Py_ssize_t *sizes, TRITONSERVER_DataType datatype,
                const int64_t *shape, uint64_t rank, void *data);
