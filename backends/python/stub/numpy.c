#include "numpy.h"

#include <stdlib.h>
#include <string.h>

#include "tensor.h"

/* What numpy calls PyArrayInterface: an array's layout, as its attribute __array_struct__ gives
 * it. */
struct array_layout {
    int two;
    int rank;
    char kind;
    int item_bytes;
    int flags;
    Py_ssize_t *shape, *strides;
    void *data;
    PyObject *description;
};

enum { CONTIGUOUS = 1, ALIGNED = 0x100, NATIVE = 0x200, WRITABLE = 0x400 };

/* What is needed of numpy, once it was imported. */
static struct {
    PyObject *ndarray, *asarray, *ascontiguous, *empty, *object;
    PyObject *structure; /* "__array_struct__" */
} numpy;

/* Imports numpy, once. False: an exception is set. */
static bool numpy_import(void)
{
    if (numpy.structure)
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
    if (numpy.ndarray && numpy.asarray && numpy.ascontiguous && numpy.empty && numpy.object)
        numpy.structure = PyUnicode_InternFromString("__array_struct__");
    return numpy.structure != NULL;
}

/* The layout of an array that is contiguous, made so where it is not.
 * ret_array  owned by the caller; keeps the layout's memory
 * returns    NULL with an exception */
static PyObject *layout_of(PyObject *given, PyObject **ret_array, struct array_layout **ret_layout)
{
    PyObject *array = given;
    Py_INCREF(array);
    for (int tries = 0; tries < 2; tries++) {
        PyObject *capsule = PyObject_GetAttr(array, numpy.structure);
        struct array_layout *layout = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
        if (!layout) {
            Py_XDECREF(capsule);
            break;
        }
        if (layout->flags & CONTIGUOUS) {
            *ret_array = array;
            *ret_layout = layout;
            return capsule;
        }
        Py_DECREF(capsule);
        PyObject *made = PyObject_CallFunctionObjArgs(numpy.ascontiguous, array, NULL);
        Py_DECREF(array);
        array = made;
        if (!array)
            return NULL;
    }
    Py_XDECREF(array);
    return PyErr_Occurred() ? NULL : core_fail("the array has no contiguous form");
}

static uint32_t array_datatype(const struct array_layout *layout)
{
    if (layout->kind == 'O' || layout->kind == 'S')
        return TRITONSERVER_TYPE_BYTES;
    if (!(layout->flags & NATIVE) && layout->item_bytes > 1)
        return TRITONSERVER_TYPE_INVALID;
    for (uint32_t i = 1; i < DATATYPES; i++) {
        if (datatypes[i].kind == layout->kind && datatypes[i].bytes == layout->item_bytes)
            return i;
    }
    return TRITONSERVER_TYPE_INVALID;
}

/* An element of a tensor of texts, as bytes; a new reference. */
static PyObject *text_of(PyObject *item)
{
    if (PyBytes_CheckExact(item)) {
        Py_INCREF(item);
        return item;
    }
    PyObject *text = PyObject_Str(item);
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    Py_XDECREF(text);
    return bytes;
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

static bool texts_put(struct wire_out *out, const struct array_layout *layout, size_t count)
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
        PyObject *bytes = text_of(item ? item : Py_None);
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
static bool tensor_texts(struct tensor *t, const struct array_layout *layout, size_t count)
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

static bool tensor_fill(struct tensor *t, PyObject *array, const struct array_layout *layout)
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
    struct array_layout *layout = NULL;
    PyObject *capsule = layout_of(given, &array, &layout);
    if (!capsule)
        return NULL;
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
    PyObject *capsule = array ? PyObject_GetAttr(array, numpy.structure) : NULL;
    struct array_layout *layout = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    const char *at = t->data;
    for (size_t i = 0; layout && i < count; i++) {
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
    if (t->datatype >= DATATYPES || !datatypes[t->datatype].bytes || !datatypes[t->datatype].kind) {
        PyErr_SetString(PyExc_AttributeError, "__array_struct__");
        return NULL;
    }
    struct array_layout *layout = malloc(sizeof *layout + 2 * t->rank * sizeof(Py_ssize_t));
    if (!layout)
        return PyErr_NoMemory();
    *layout = (struct array_layout){.two = 2,
                                    .rank = (int)t->rank,
                                    .kind = datatypes[t->datatype].kind,
                                    .item_bytes = datatypes[t->datatype].bytes,
                                    .flags = CONTIGUOUS | ALIGNED | NATIVE | WRITABLE,
                                    .shape = (Py_ssize_t *)(layout + 1),
                                    .strides = (Py_ssize_t *)(layout + 1) + t->rank,
                                    .data = t->data};
    Py_ssize_t stride = layout->item_bytes;
    for (uint32_t i = t->rank; i-- > 0;) {
        layout->shape[i] = (Py_ssize_t)t->shape[i];
        layout->strides[i] = stride;
        stride *= layout->shape[i];
    }
    return PyCapsule_New(layout, NULL, layout_free);
}
