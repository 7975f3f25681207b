#include "numpy.h"

#include <stdlib.h>
#include <string.h>

#include "common/cpython/layout.h"
#include "common/cpython/text.h"
#include "tensor.h"

/* What is needed of numpy, once it was imported. */
static struct {
    PyObject *ndarray, *asarray, *ascontiguous, *empty, *object;
    bool imported;
} numpy;

/* Imports numpy, once. False: an exception is set. */
static bool numpy_import(void)
{
    if (numpy.imported)
        return true;
    PyObject *module = PyImport_ImportModule("numpy");
    if (!module)
        return false;
    numpy.ndarray = PyObject_GetAttrString(module, "ndarray");
    numpy.asarray = PyObject_GetAttrString(module, "asarray");
    numpy.ascontiguous = PyObject_GetAttrString(module, "ascontiguousarray");
    numpy.empty = PyObject_GetAttrString(module, "empty");
    numpy.object = PyObject_GetAttrString(module, "object_");
    Py_DECREF(module);
    numpy.imported =
        numpy.ndarray && numpy.asarray && numpy.ascontiguous && numpy.empty && numpy.object;
    return numpy.imported;
}

static uint32_t array_datatype(const struct layout *layout)
{
    if (layout->kind == 'O' || layout->kind == 'S')
        return TRITONSERVER_TYPE_BYTES;
    if (!(layout->flags & LAYOUT_NATIVE) && layout->item_bytes > 1)
        return TRITONSERVER_TYPE_INVALID;
    return layout_datatype(layout);
}

static bool text_put(struct wire_out *out, const char *text, size_t length)
{
    uint32_t size = (uint32_t)length;
    char *place = length <= UINT32_MAX ? wire_grow(out, sizeof size + length) : NULL;
    if (!place) {
        PyErr_NoMemory();
        return false;
    }
    memcpy(place, &size, sizeof size);
    memcpy(place + sizeof size, text, length);
    return true;
}

static bool texts_put(struct wire_out *out, const struct layout *layout, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)layout->data + i * (size_t)layout->item_bytes;
        if (layout->kind == 'S') {
            size_t length = (size_t)layout->item_bytes;
            while (length > 0 && at[length - 1] == '\0')
                length--;
            if (!text_put(out, at, length))
                return false;
            continue;
        }
        PyObject *item = *(PyObject *const *)(const void *)at;
        PyObject *bytes = text_bytes(item ? item : Py_None, false);
        char *text;
        Py_ssize_t length;
        bool well = bytes && PyBytes_AsStringAndSize(bytes, &text, &length) == 0 &&
                    text_put(out, text, (size_t)length);
        Py_XDECREF(bytes);
        if (!well)
            return false;
    }
    return true;
}

/* Serialises the texts of an array: each with its length before it. */
static bool tensor_texts(struct tensor *t, const struct layout *layout, size_t count)
{
    struct wire_out out = {0};
    bool well = texts_put(&out, layout, count);
    if (well) {
        t->owner = PyBytes_FromStringAndSize(out.at ? out.at : "", (Py_ssize_t)out.used);
        t->bytes = out.used;
        t->data = t->owner ? PyBytes_AsString(t->owner) : NULL;
    }
    wire_fini(&out);
    return t->data != NULL;
}

static bool tensor_fill(struct tensor *t, PyObject *array, const struct layout *layout)
{
    size_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->shape[i] = layout->shape[i];
        count *= (size_t)layout->shape[i];
    }
    t->datatype = array_datatype(layout);
    Py_INCREF(array);
    t->array = array;
    if (t->datatype == TRITONSERVER_TYPE_INVALID)
        return core_fail("NumPy dtype is not supported.") != NULL;
    if (t->datatype == TRITONSERVER_TYPE_BYTES)
        return tensor_texts(t, layout, count);
    t->bytes = count * (size_t)layout->item_bytes;
    t->data = layout->data;
    return true;
}

PyObject *numpy_tensor(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    PyObject *name, *given;
    static char *names[] = {"name", "array", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "UO:Tensor", names, &name, &given) ||
        !numpy_import())
        return NULL;
    int fits = PyObject_IsInstance(given, numpy.ndarray);
    if (fits < 1) {
        if (fits == 0)
            PyErr_Format(PyExc_TypeError, "Tensor '%U' is made of a numpy.ndarray, not of %R", name,
                         (PyObject *)Py_TYPE(given));
        return NULL;
    }
    PyObject *array = NULL;
    struct layout *layout = NULL;
    PyObject *capsule =
        layout_of(given, LAYOUT_CONTIGUOUS, "", numpy.ascontiguous, &array, &layout);
    if (!capsule)
        return PyErr_Occurred() ? NULL : core_fail("the array has no contiguous form");
    struct tensor *t = layout->rank <= WIRE_MAX_DIMS ? tensor_blank((uint32_t)layout->rank) : NULL;
    if (t && (!tensor_name_it(t, name) || !tensor_fill(t, array, layout))) {
        Py_DECREF(t);
        t = NULL;
    }
    Py_DECREF(array);
    Py_DECREF(capsule);
    return (PyObject *)t;
}

/* An array of the texts that the server sent. */
static PyObject *texts_read(const struct tensor *t)
{
    size_t count = 0;
    for (uint64_t at = 0; at < t->bytes; count++) {
        uint32_t length;
        if (t->bytes - at < sizeof length)
            return core_fail("Invalid bytes tensor data: incomplete length field");
        memcpy(&length, t->data + at, sizeof length);
        at += sizeof length;
        if (t->bytes - at < length)
            return core_fail("Invalid bytes tensor data: string extends beyond buffer");
        at += length;
    }
    PyObject *array = PyObject_CallFunction(numpy.empty, "nO", (Py_ssize_t)count, numpy.object);
    struct layout *layout;
    PyObject *capsule = array ? layout_ask(array, &layout) : NULL;
    const char *at = t->data;
    for (size_t i = 0; capsule && i < count; i++) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        PyObject *text = PyBytes_FromStringAndSize(at + sizeof length, length);
        if (!text)
            break;
        PyObject **slot = (PyObject **)layout->data + i;
        Py_XDECREF(*slot);
        *slot = text;
        at += sizeof length + length;
    }
    Py_XDECREF(capsule);
    if (PyErr_Occurred())
        Py_CLEAR(array);
    return array;
}

static PyObject *tensor_shaped_texts(PyObject *self)
{
    struct tensor *t = (struct tensor *)self;
    PyObject *flat = texts_read(t);
    if (!flat || t->rank == 1)
        return flat;
    PyObject *shape = tensor_shape(self, NULL);
    PyObject *array = shape ? PyObject_CallMethod(flat, "reshape", "(O)", shape) : NULL;
    Py_XDECREF(shape);
    Py_DECREF(flat);
    return array;
}

PyObject *numpy_of_tensor(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct tensor *t = (struct tensor *)self;
    if (t->device != TENSOR_ON_HOST)
        return core_fail("Tensor is stored in GPU and cannot be converted to NumPy.");
    if (t->datatype == TRITONSERVER_TYPE_BF16)
        return core_fail("Tensor dtype is BF16 and cannot be converted to NumPy. Use "
                         "to_dlpack() and from_dlpack() instead.");
    if (!numpy_import())
        return NULL;
    if (!t->array && t->datatype != TRITONSERVER_TYPE_BYTES)
        return PyObject_CallFunctionObjArgs(numpy.asarray, self, NULL); /* its base is the tensor */
    if (!t->array)
        t->array = tensor_shaped_texts(self);
    Py_XINCREF(t->array);
    return t->array;
}

static void layout_free(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

PyObject *numpy_layout(PyObject *self, void *unused)
{
    (void)unused;
    struct tensor *t = (struct tensor *)self;
    if (t->datatype >= LAYOUT_TYPES || !layout_types[t->datatype].bytes ||
        t->datatype == TRITONSERVER_TYPE_BF16 || t->device != TENSOR_ON_HOST) {
        PyErr_SetString(PyExc_AttributeError, "__array_struct__");
        return NULL;
    }
    struct layout *layout = malloc(sizeof *layout + 2 * t->rank * sizeof(Py_ssize_t));
    if (!layout)
        return PyErr_NoMemory();
    layout_set(layout, (Py_ssize_t *)(layout + 1), t->datatype, t->shape, t->rank, t->data);
    layout->flags |= LAYOUT_WRITABLE;
    return PyCapsule_New(layout, NULL, layout_free);
}
