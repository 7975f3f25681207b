#include "dlpack.h"

#include <stdlib.h>

#include "common/cpython/layout.h"
#include "gpu.h"
#include "tensor.h"

/* The interface's version 0.8. */

/* How it calls a datatype; DLPACK_NONE = not at all. */
enum dlpack_code {
    DLPACK_INT,
    DLPACK_UINT,
    DLPACK_FLOAT,
    DLPACK_BFLOAT = 4,
    DLPACK_BOOL = 6,
    DLPACK_NONE = 255
};

enum dlpack_place { DLPACK_CPU = 1, DLPACK_GPU = 2, DLPACK_PINNED = 3 };

/* The stream of who wants no other stream to be waited for. */
enum { DLPACK_NO_STREAM = -1 };

struct dlpack_device {
    int32_t type;
    int32_t number;
};

struct dlpack_type {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t rank;
    struct dlpack_type datatype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL = contiguous */
    uint64_t byte_offset;
};

struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *managed);
};

static uint8_t dlpack_code(uint32_t datatype)
{
    if (datatype == TRITONSERVER_TYPE_BF16)
        return DLPACK_BFLOAT;
    switch (datatype < LAYOUT_TYPES ? layout_types[datatype].kind : 0) {
    case 'i':
        return DLPACK_INT;
    case 'u':
        return DLPACK_UINT;
    case 'f':
        return DLPACK_FLOAT;
    case 'b':
        return DLPACK_BOOL;
    default:
        return DLPACK_NONE;
    }
}

static void lent_delete(struct dlpack_managed *managed)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF((PyObject *)managed->context);
    PyGILState_Release(state);
    free(managed);
}

/* Ends a tensor. Its deleter may run Python, which no exception that is on its way may meet, and is
 * none to leave one. */
static void managed_end(struct dlpack_managed *managed)
{
    if (!managed || !managed->deleter)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    managed->deleter(managed);
    PyErr_Restore(type, value, trace);
}

static void dlpack_unused(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        managed_end(PyCapsule_GetPointer(capsule, "dltensor"));
}

static struct dlpack_device dlpack_device_of(const struct tensor *t)
{
    if (t->device == TENSOR_ON_HOST)
        return (struct dlpack_device){.type = DLPACK_CPU};
    return (struct dlpack_device){.type = DLPACK_GPU, .number = t->device};
}

/* settle  who takes it may read it at once, by any stream */
static PyObject *dlpack_lend(PyObject *self, bool settle)
{
    struct tensor *t = (struct tensor *)self;
    if (t->datatype == TRITONSERVER_TYPE_BYTES)
        return core_fail("DLPack does not have support for string tensors.");
    if (dlpack_code(t->datatype) == DLPACK_NONE)
        return core_fail("DType code \"%u\" is not supported.", t->datatype);
    if (!tensor_reach(t))
        return NULL;
    if (settle && t->device != TENSOR_ON_HOST && !gpu_settle(t->device, t->name))
        return NULL;
    struct dlpack_managed *managed = calloc(1, sizeof *managed);
    if (!managed)
        return PyErr_NoMemory();
    managed->tensor =
        (struct dlpack_tensor){.data = t->data,
                               .device = dlpack_device_of(t),
                               .rank = (int32_t)t->rank,
                               .datatype = {.code = dlpack_code(t->datatype),
                                            .bits = (uint8_t)(layout_types[t->datatype].bytes * 8),
                                            .lanes = 1},
                               .shape = t->shape};
    managed->deleter = lent_delete;
    Py_INCREF(self);
    managed->context = self;
    PyObject *capsule = PyCapsule_New(managed, "dltensor", dlpack_unused);
    if (!capsule)
        lent_delete(managed);
    return capsule;
}

PyObject *dlpack_of_tensor(PyObject *self, PyObject *unused)
{
    (void)unused;
    return dlpack_lend(self, true);
}

PyObject *dlpack_asked(PyObject *self, PyObject *args, PyObject *keywords)
{
    /* Later numpys ask for more, which bytes of a processor do not need. */
    (void)args;
    PyObject *stream = keywords ? PyDict_GetItemString(keywords, "stream") : NULL;
    bool none = stream && PyLong_Check(stream) && PyLong_AsLongLong(stream) == DLPACK_NO_STREAM &&
                !PyErr_Occurred();
    PyErr_Clear(); /* what is no such number is a stream */
    return dlpack_lend(self, !none);
}

PyObject *dlpack_where(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct dlpack_device device = dlpack_device_of((struct tensor *)self);
    return Py_BuildValue("(ii)", device.type, device.number);
}

static void borrowed_delete(PyObject *capsule)
{
    managed_end(PyCapsule_GetPointer(capsule, "used_dlpack"));
}

static bool dlpack_is_contiguous(const struct dlpack_tensor *from)
{
    for (int32_t i = 0; i < from->rank; i++) {
        if (from->shape[i] == 0)
            return true; /* without elements, whatever the strides are */
    }
    int64_t stride = 1;
    for (int32_t i = from->rank; from->strides && i-- > 0;) {
        if (from->shape[i] == 1)
            continue;
        if (from->strides[i] != stride)
            return false;
        stride *= from->shape[i];
    }
    return true;
}

static uint32_t dlpack_datatype(const struct dlpack_type *type)
{
    for (uint32_t i = 1; i < LAYOUT_TYPES && type->lanes == 1; i++) {
        if (layout_types[i].bytes * 8 == type->bits && dlpack_code(i) == type->code)
            return i;
    }
    return TRITONSERVER_TYPE_INVALID;
}

static bool dlpack_is_known(struct dlpack_device device)
{
    if (device.type == DLPACK_GPU && device.number < 0)
        return core_fail("a DLPack tensor is on a GPU of the number %d, which is none",
                         device.number) != NULL;
    return device.type == DLPACK_CPU || device.type == DLPACK_GPU || device.type == DLPACK_PINNED ||
           core_fail("DLDevice type %d is not support by Python backend.", device.type);
}

static PyObject *tensor_of_capsule(PyObject *name, PyObject *capsule)
{
    struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    if (!managed)
        return NULL;
    const struct dlpack_tensor *from = &managed->tensor;
    if (!dlpack_is_contiguous(from))
        return core_fail("DLPack tensor is not contiguous. Only contiguous DLPack tensors that are "
                         "stored in C-Order are supported.");
    if (!dlpack_is_known(from->device))
        return NULL;
    uint32_t datatype = dlpack_datatype(&from->datatype);
    if (from->rank < 0 || from->rank > WIRE_MAX_DIMS || datatype == TRITONSERVER_TYPE_INVALID)
        return core_fail("the DLPack tensor's type, of code %d and %d bits, has no counterpart",
                         from->datatype.code, from->datatype.bits);
    struct tensor *t = tensor_blank((uint32_t)from->rank);
    if (!t)
        return NULL;
    uint64_t bytes = layout_types[datatype].bytes;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->shape[i] = from->shape[i];
        bytes *= (uint64_t)from->shape[i];
    }
    t->datatype = datatype;
    t->bytes = bytes;
    if (from->device.type == DLPACK_GPU)
        t->device = from->device.number;
    t->data = (char *)from->data + from->byte_offset;
    t->owner = PyCapsule_New(managed, "used_dlpack", borrowed_delete);
    if (!t->owner || !tensor_name_it(t, name) || PyCapsule_SetName(capsule, "used_dltensor") != 0) {
        if (t->owner)
            PyCapsule_SetDestructor(t->owner, NULL); /* the other capsule has it still */
        Py_DECREF(t);
        return NULL;
    }
    return (PyObject *)t;
}

PyObject *dlpack_make(PyObject *unused, PyObject *args)
{
    (void)unused;
    PyObject *name, *given;
    if (!PyArg_ParseTuple(args, "UO:from_dlpack", &name, &given))
        return NULL;
    if (PyUnicode_GetLength(name) == 0)
        return core_fail("Tensor name cannot be an empty string.");
    if (PyCapsule_CheckExact(given))
        return tensor_of_capsule(name, given);
    if (!PyObject_HasAttrString(given, "__dlpack__") ||
        !PyObject_HasAttrString(given, "__dlpack_device__"))
        return core_fail(
            "Provided tensor is not supported. Tensor must be a DLPack capsule         or "
            "have `__dlpack__` and `__dlpack_device__` attributes");
    PyObject *device = PyObject_CallMethod(given, "__dlpack_device__", NULL);
    struct dlpack_device told = {0};
    bool well = device && PyArg_ParseTuple(device, "ii", &told.type, &told.number);
    Py_XDECREF(device);
    if (!well)
        return NULL;
    if (!dlpack_is_known(told))
        return NULL;
    PyObject *capsule = PyObject_CallMethod(given, "__dlpack__", NULL);
    PyObject *made = capsule ? tensor_of_capsule(name, capsule) : NULL;
    Py_XDECREF(capsule);
    return made;
}
