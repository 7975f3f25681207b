#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#include "dlpack.h"
#include "gpu.h"
#include "numpy.h"
#include "send.h"

bool tensor_is(PyObject *object)
{
    return PyObject_TypeCheck(object, core.tensor);
}

PyObject *tensor_name(PyObject *tensor)
{
    return ((struct tensor *)tensor)->name;
}

struct tensor *tensor_blank(uint32_t rank)
{
    struct tensor *t = (struct tensor *)PyType_GenericAlloc(core.tensor, 0);
    if (!t)
        return NULL;
    t->rank = rank;
    t->device = TENSOR_ON_HOST;
    t->shape = rank <= sizeof t->few / sizeof t->few[0] ? t->few : malloc(rank * sizeof *t->shape);
    if (!t->shape) {
        Py_DECREF(t);
        PyErr_NoMemory();
        return NULL;
    }
    return t;
}

static void tensor_free(PyObject *self)
{
    struct tensor *t = (struct tensor *)self;
    if (t->shape != t->few)
        free(t->shape);
    Py_XDECREF(t->name);
    Py_XDECREF(t->owner);
    Py_XDECREF(t->array);
    types_free(self);
}

bool tensor_name_it(struct tensor *t, PyObject *name)
{
    if (PyUnicode_GetLength(name) == 0)
        return core_fail("Tensor name cannot be an empty string.") != NULL;
    Py_INCREF(name);
    t->name = name;
    return true;
}

PyObject *tensor_read(struct wire_in *in, PyObject *record)
{
    struct wire_tensor wire;
    wire_tensor(in, &wire);
    struct tensor *t = tensor_blank(wire.rank);
    if (!t)
        return NULL;
    memcpy(t->shape, wire.shape, wire.rank * sizeof t->shape[0]);
    t->datatype = wire.datatype;
    t->bytes = wire.bytes;
    t->name = PyUnicode_DecodeUTF8(wire.name, (Py_ssize_t)wire.name_length, "replace");
    if (wire.place == WIRE_INLINE) {
        t->data = (char *)(uintptr_t)wire.data;
        Py_INCREF(record);
        t->owner = record;
    } else if (wire.place == WIRE_GPU) {
        t->device = wire.gpu.device;
        t->lent = true;
        t->owner = gpu_lent(&wire);
    } else {
        t->data = channel_at(wire.where, wire.bytes);
        t->owner = record_of_place(wire.where);
    }
    if (!t->name || !t->owner || in->bad || (!t->data && !t->lent)) {
        Py_DECREF(t);
        return PyErr_Occurred() ? NULL : core_fail("the server sent a tensor that is none");
    }
    return (PyObject *)t;
}

static bool tensor_lend(struct wire_tensor *wire, const struct tensor *t, struct lending *lent)
{
    wire->where = channel_place(t->data, t->bytes);
    wire->place = wire->where ? WIRE_ARENA : WIRE_REMOTE;
    if (wire->where)
        return true;
    if (channel_reads(t->data, t->bytes)) {
        wire->where = (uint64_t)(uintptr_t)t->data;
        return true;
    }
    wire->place = WIRE_ARENA;
    wire->where = send_share(t->data, t->bytes, lent);
    return wire->where != 0;
}

bool tensor_reach(struct tensor *t)
{
    if (t->lent && !t->data)
        t->data = gpu_reach(t->owner, t->name);
    return !t->lent || t->data;
}

/* Copies a tensor from its GPU, to a place of its own if it is a large one. `wire` is written. */
static bool tensor_fetch(struct wire_out *out, struct wire_tensor *wire, struct tensor *t,
                         struct lending *lent)
{
    wire->data = NULL;
    if (t->bytes > LINK_INLINE_MAX) {
        wire->place = WIRE_ARENA;
        wire->where = send_room(t->bytes, lent);
        if (!wire->where)
            return false;
    }
    char *to = wire_put_tensor(out, wire);
    if (wire->where)
        to = channel_at(wire->where, t->bytes);
    if (!to || t->bytes == 0)
        return true; /* no memory: whoever sends it sees that */
    lent->failed = !tensor_reach(t) || !gpu_fetch(t->device, t->name, to, t->data, t->bytes);
    return !lent->failed;
}

bool tensor_write(struct wire_out *out, PyObject *tensor, struct lending *lent)
{
    struct tensor *t = (struct tensor *)tensor;
    PyObject *name = core_whole(t->name) ? PyUnicode_AsUTF8String(t->name) : NULL;
    if (!name)
        return false;
    struct wire_tensor wire = {.datatype = t->datatype,
                               .rank = t->rank,
                               .place = WIRE_INLINE,
                               .bytes = t->bytes,
                               .data = t->data};
    memcpy(wire.shape, t->shape, t->rank * sizeof t->shape[0]);
    char *text;
    Py_ssize_t length;
    bool well = PyBytes_AsStringAndSize(name, &text, &length) == 0;
    wire.name = text;
    wire.name_length = (size_t)length;
    lent->any = lent->any || t->bytes > LINK_INLINE_MAX;
    if (t->device != TENSOR_ON_HOST) {
        well = well && tensor_fetch(out, &wire, t, lent);
    } else {
        if (t->bytes > LINK_INLINE_MAX)
            well = well && tensor_lend(&wire, t, lent);
        if (well)
            wire_put_tensor(out, &wire);
    }
    Py_DECREF(name);
    return well;
}

bool tensor_write_all(struct wire_out *out, PyObject *tensors, struct lending *lent)
{
    Py_ssize_t count = PyList_Size(tensors);
    wire_put_u32(out, (uint32_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!tensor_write(out, PyList_GetItem(tensors, i), lent))
            return false;
    }
    return true;
}

PyObject *tensor_shape(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct tensor *t = (struct tensor *)self;
    PyObject *list = PyList_New((Py_ssize_t)t->rank);
    for (uint32_t i = 0; list && i < t->rank; i++)
        PyList_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(t->shape[i]));
    return list;
}

static PyObject *tensor_get_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *name = tensor_name(self);
    Py_INCREF(name);
    return name;
}

static PyObject *tensor_get_datatype(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((struct tensor *)self)->datatype);
}

static PyObject *tensor_is_cpu(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct tensor *)self)->device == TENSOR_ON_HOST);
}

static PyMethodDef tensor_methods[] = {
    {"name", tensor_get_name, METH_NOARGS, "Its name."},
    {"as_numpy", numpy_of_tensor, METH_NOARGS,
     "A numpy array of it, on its own bytes; texts are copied."},
    {"triton_dtype", tensor_get_datatype, METH_NOARGS, "Its datatype, a number."},
    {"shape", tensor_shape, METH_NOARGS, "Its dimensions, a list."},
    {"is_cpu", tensor_is_cpu, METH_NOARGS, "Whether its bytes are in the memory of processors."},
    {"to_dlpack", dlpack_of_tensor, METH_NOARGS, "A DLPack capsule of it."},
    {"from_dlpack", dlpack_make, METH_VARARGS | METH_STATIC,
     "A tensor on what a capsule, or a tensor of another library, holds."},
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack_asked, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule of it."},
    {"__dlpack_device__", dlpack_where, METH_NOARGS, "Where it is, for DLPack."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_attributes[] = {
    {"__array_struct__", numpy_layout, NULL, "Its layout, for numpy.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "An input or output: a name, a datatype, a shape and bytes."},
    {Py_tp_new, (void *)numpy_tensor},
    {Py_tp_dealloc, (void *)tensor_free},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_attributes},
    {0, NULL},
};

PyType_Spec tensor_spec = {.name = "c_python_backend_utils.Tensor",
                           .basicsize = sizeof(struct tensor),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = tensor_slots};
