#include "layout.h"

#include <string.h>

const struct layout_type layout_types[LAYOUT_TYPES] = {
    [TRITONSERVER_TYPE_BOOL] = {'b', 1},   [TRITONSERVER_TYPE_UINT8] = {'u', 1},
    [TRITONSERVER_TYPE_UINT16] = {'u', 2}, [TRITONSERVER_TYPE_UINT32] = {'u', 4},
    [TRITONSERVER_TYPE_UINT64] = {'u', 8}, [TRITONSERVER_TYPE_INT8] = {'i', 1},
    [TRITONSERVER_TYPE_INT16] = {'i', 2},  [TRITONSERVER_TYPE_INT32] = {'i', 4},
    [TRITONSERVER_TYPE_INT64] = {'i', 8},  [TRITONSERVER_TYPE_FP16] = {'f', 2},
    [TRITONSERVER_TYPE_FP32] = {'f', 4},   [TRITONSERVER_TYPE_FP64] = {'f', 8},
    [TRITONSERVER_TYPE_BYTES] = {'O', 0},  [TRITONSERVER_TYPE_BF16] = {'u', 2},
};

TRITONSERVER_DataType layout_datatype(const struct layout *layout)
{
    for (int i = 1; i < TRITONSERVER_TYPE_BYTES; i++)
        if (layout_types[i].kind == layout->kind && layout_types[i].bytes == layout->item_bytes)
            return (TRITONSERVER_DataType)i;
    return TRITONSERVER_TYPE_INVALID;
}

PyObject *layout_ask(PyObject *array, struct layout **ret_layout)
{
    static PyObject *name; /* under the GIL */
    if (!name)
        name = PyUnicode_InternFromString("__array_struct__");
    PyObject *capsule = name ? PyObject_GetAttr(array, name) : NULL;
    struct layout *layout = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    if (layout)
        *ret_layout = layout;
    else
        Py_CLEAR(capsule);
    return capsule;
}

PyObject *layout_of(PyObject *given, int flags, const char *kinds, PyObject *make,
                    PyObject **ret_array, struct layout **ret_layout)
{
    PyObject *array = given;
    Py_INCREF(array);
    for (int tries = 0; array && tries < 2; tries++) {
        struct layout *layout;
        PyObject *capsule = layout_ask(array, &layout);
        if (!capsule)
            break;
        if ((layout->flags & flags) == flags && !strchr(kinds, layout->kind)) {
            *ret_array = array;
            *ret_layout = layout;
            return capsule;
        }
        Py_DECREF(capsule);
        PyObject *made = PyObject_CallFunctionObjArgs(make, array, NULL);
        Py_DECREF(array);
        array = made;
    }
    Py_XDECREF(array);
    return NULL;
}

/* NumPy's dtype, made once: without one NumPy writes a text about each array and reads that.
 * Borrowed; NULL = it cannot be had. */
static PyObject *layout_dtype(TRITONSERVER_DataType datatype)
{
    static PyObject *made[LAYOUT_TYPES]; /* under the GIL */
    const struct layout_type *type = &layout_types[datatype];
    const char text[] = {type->kind, (char)('0' + type->bytes), '\0'};
    if (made[datatype])
        return made[datatype];
    PyObject *numpy = PyImport_ImportModule("numpy");
    made[datatype] = numpy ? PyObject_CallMethod(numpy, "dtype", "s", text) : NULL;
    Py_XDECREF(numpy);
    PyErr_Clear();
    return made[datatype];
}

void layout_set(struct layout *layout, Py_ssize_t *sizes, TRITONSERVER_DataType datatype,
                const int64_t *shape, uint64_t rank, void *data)
{
    *layout = (struct layout){.two = 2,
                              .rank = (int)rank,
                              .kind = layout_types[datatype].kind,
                              .item_bytes = layout_types[datatype].bytes,
                              .flags = LAYOUT_CONTIGUOUS | LAYOUT_ALIGNED | LAYOUT_NATIVE,
                              .shape = sizes,
                              .strides = sizes + rank,
                              .data = data,
                              .description = layout_dtype(datatype)};
    if (layout->description)
        layout->flags |= LAYOUT_DESCRIBED;
    Py_ssize_t stride = layout->item_bytes;
    for (uint64_t i = rank; i-- > 0;) {
        layout->shape[i] = (Py_ssize_t)shape[i];
        layout->strides[i] = stride;
        stride *= shape[i] > 0 ? (Py_ssize_t)shape[i] : 1;
    }
}
