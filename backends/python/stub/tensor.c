#include "core.h"

#include <stdlib.h>
#include <string.h>

#include "dlpack.h"
#include "triton/core/tritonserver.h"

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

/* How numpy and DLPack call a datatype. */
struct datatype {
    char kind;
    uint8_t code;
    uint8_t bytes;
};

static const struct datatype datatypes[] = {
    [TRITONSERVER_TYPE_BOOL] = {'b', DLPACK_BOOL, 1},
    [TRITONSERVER_TYPE_UINT8] = {'u', DLPACK_UINT, 1},
    [TRITONSERVER_TYPE_UINT16] = {'u', DLPACK_UINT, 2},
    [TRITONSERVER_TYPE_UINT32] = {'u', DLPACK_UINT, 4},
    [TRITONSERVER_TYPE_UINT64] = {'u', DLPACK_UINT, 8},
    [TRITONSERVER_TYPE_INT8] = {'i', DLPACK_INT, 1},
    [TRITONSERVER_TYPE_INT16] = {'i', DLPACK_INT, 2},
    [TRITONSERVER_TYPE_INT32] = {'i', DLPACK_INT, 4},
    [TRITONSERVER_TYPE_INT64] = {'i', DLPACK_INT, 8},
    [TRITONSERVER_TYPE_FP16] = {'f', DLPACK_FLOAT, 2},
    [TRITONSERVER_TYPE_FP32] = {'f', DLPACK_FLOAT, 4},
    [TRITONSERVER_TYPE_FP64] = {'f', DLPACK_FLOAT, 8},
    [TRITONSERVER_TYPE_BYTES] = {'O', DLPACK_NONE, 0},
    [TRITONSERVER_TYPE_BF16] = {0, DLPACK_BFLOAT, 2},
};
enum { DATATYPES = sizeof datatypes / sizeof datatypes[0] };

bool tensor_is(PyObject *object)
{
    return PyObject_TypeCheck(object, core.tensor);
}

PyObject *tensor_name(PyObject *tensor)
{
    return ((struct tensor *)tensor)->name;
}

static struct tensor *tensor_blank(uint32_t rank)
{
    struct tensor *t = (struct tensor *)PyType_GenericAlloc(core.tensor, 0);
    if (!t)
        return NULL;
    t->rank = rank;
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
    PyTypeObject *type = Py_TYPE(self);
    if (t->shape != t->few)
        free(t->shape);
    Py_XDECREF(t->name);
    Py_XDECREF(t->owner);
    Py_XDECREF(t->array);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static bool tensor_name_it(struct tensor *t, PyObject *name)
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
    } else {
        /* A record of its own, which gives the place back. */
        struct channel_record *place = calloc(1, sizeof *place);
        t->data = channel_at(wire.where, wire.bytes);
        if (place)
            place->place = wire.where;
        t->owner = place ? record_wrap(place) : PyErr_NoMemory();
    }
    if (!t->name || !t->owner || in->bad || !t->data) {
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
    if (channel_is_read()) {
        wire->where = (uint64_t)(uintptr_t)t->data;
        return true;
    }
    wire->place = WIRE_ARENA;
    wire->where = share_bytes(t->data, t->bytes, lent);
    return wire->where != 0;
}

bool tensor_write(struct wire_out *out, PyObject *tensor, struct lending *lent)
{
    struct tensor *t = (struct tensor *)tensor;
    PyObject *name = PyUnicode_AsUTF8String(t->name);
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
    if (t->bytes > LINK_INLINE_MAX) {
        lent->any = true;
        well = well && tensor_lend(&wire, t, lent);
    }
    if (well)
        wire_put_tensor(out, &wire);
    Py_DECREF(name);
    return well;
}

/* The layout of an array that is contiguous, made so where it is not.
 * ret_array  owned by the caller; keeps the layout's memory
 * returns    NULL with an exception */
static PyObject *layout_of(PyObject *given, PyObject **ret_array, struct array_layout **ret_layout)
{
    PyObject *array = given;
    Py_INCREF(array);
    for (int tries = 0; tries < 2; tries++) {
        PyObject *capsule = PyObject_GetAttr(array, core.structure);
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
        PyObject *made = PyObject_CallFunctionObjArgs(core.ascontiguous, array, NULL);
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

static PyObject *tensor_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    PyObject *name, *given;
    static char *names[] = {"name", "array", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "UO:Tensor", names, &name, &given) ||
        !core_numpy())
        return NULL;
    int fits = PyObject_IsInstance(given, core.ndarray);
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
    PyObject *array = PyObject_CallFunction(core.empty, "nO", (Py_ssize_t)count, core.object);
    PyObject *capsule = array ? PyObject_GetAttr(array, core.structure) : NULL;
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

static PyObject *tensor_shape(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct tensor *t = (struct tensor *)self;
    PyObject *list = PyList_New((Py_ssize_t)t->rank);
    for (uint32_t i = 0; list && i < t->rank; i++)
        PyList_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(t->shape[i]));
    return list;
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

static PyObject *tensor_as_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct tensor *t = (struct tensor *)self;
    if (t->datatype == TRITONSERVER_TYPE_BF16)
        return core_fail("Tensor dtype is BF16 and cannot be converted to NumPy. Use "
                         "to_dlpack() and from_dlpack() instead.");
    if (!core_numpy())
        return NULL;
    if (!t->array && t->datatype != TRITONSERVER_TYPE_BYTES)
        return PyObject_CallFunctionObjArgs(core.asarray, self, NULL); /* its base is the tensor */
    if (!t->array)
        t->array = tensor_shaped_texts(self);
    Py_XINCREF(t->array);
    return t->array;
}

static void layout_free(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

/* __array_struct__: how numpy sees a tensor's bytes where they are. */
static PyObject *tensor_layout(PyObject *self, void *unused)
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

static void lent_delete(struct dlpack_managed *managed)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF((PyObject *)managed->context);
    PyGILState_Release(state);
    free(managed);
}

static void dlpack_unused(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return;
    struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    if (managed && managed->deleter)
        managed->deleter(managed);
}

static PyObject *tensor_to_dlpack(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct tensor *t = (struct tensor *)self;
    if (t->datatype == TRITONSERVER_TYPE_BYTES)
        return core_fail("DLPack does not have support for string tensors.");
    if (t->datatype >= DATATYPES || datatypes[t->datatype].code == DLPACK_NONE)
        return core_fail("DType code \"%u\" is not supported.", t->datatype);
    struct dlpack_managed *managed = calloc(1, sizeof *managed);
    if (!managed)
        return PyErr_NoMemory();
    managed->tensor =
        (struct dlpack_tensor){.data = t->data,
                               .device = {.type = DLPACK_CPU},
                               .rank = (int32_t)t->rank,
                               .datatype = {.code = datatypes[t->datatype].code,
                                            .bits = (uint8_t)(datatypes[t->datatype].bytes * 8),
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

static PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    /* The stream, and what later numpys ask for: bytes of a processor need none of it. */
    (void)args;
    (void)keywords;
    return tensor_to_dlpack(self, NULL);
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

static void borrowed_delete(PyObject *capsule)
{
    struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, "used_dlpack");
    if (managed && managed->deleter)
        managed->deleter(managed);
}

static bool dlpack_is_contiguous(const struct dlpack_tensor *from)
{
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
    for (uint32_t i = 1; i < DATATYPES && type->lanes == 1; i++) {
        if (datatypes[i].bytes * 8 == type->bits && datatypes[i].code == type->code)
            return i;
    }
    return TRITONSERVER_TYPE_INVALID;
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
    if (from->device.type != DLPACK_CPU && from->device.type != DLPACK_PINNED)
        return core_fail("DLDevice type %d is not support by Python backend.", from->device.type);
    uint32_t datatype = dlpack_datatype(&from->datatype);
    if (from->rank < 0 || from->rank > WIRE_MAX_DIMS || datatype == TRITONSERVER_TYPE_INVALID)
        return core_fail("the DLPack tensor's type, of code %d and %d bits, has no counterpart",
                         from->datatype.code, from->datatype.bits);
    struct tensor *t = tensor_blank((uint32_t)from->rank);
    if (!t)
        return NULL;
    uint64_t bytes = datatypes[datatype].bytes;
    for (uint32_t i = 0; i < t->rank; i++) {
        t->shape[i] = from->shape[i];
        bytes *= (uint64_t)from->shape[i];
    }
    t->datatype = datatype;
    t->bytes = bytes;
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

static PyObject *tensor_from_dlpack(PyObject *unused, PyObject *args)
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
    int type = 0, number = 0;
    bool well = device && PyArg_ParseTuple(device, "ii", &type, &number);
    Py_XDECREF(device);
    if (!well)
        return NULL;
    if (type != DLPACK_CPU && type != DLPACK_PINNED)
        return core_fail("DLDevice type %d is not support by Python backend.", type);
    PyObject *capsule = PyObject_CallMethod(given, "__dlpack__", NULL);
    PyObject *made = capsule ? tensor_of_capsule(name, capsule) : NULL;
    Py_XDECREF(capsule);
    return made;
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
    (void)self;
    (void)unused;
    Py_RETURN_TRUE;
}

static PyMethodDef tensor_methods[] = {
    {"name", tensor_get_name, METH_NOARGS, "Its name."},
    {"as_numpy", tensor_as_numpy, METH_NOARGS,
     "A numpy array of it, on its own bytes; texts are copied."},
    {"triton_dtype", tensor_get_datatype, METH_NOARGS, "Its datatype, a number."},
    {"shape", tensor_shape, METH_NOARGS, "Its dimensions, a list."},
    {"is_cpu", tensor_is_cpu, METH_NOARGS, "Whether its bytes are in the memory of processors."},
    {"to_dlpack", tensor_to_dlpack, METH_NOARGS, "A DLPack capsule of it."},
    {"from_dlpack", tensor_from_dlpack, METH_VARARGS | METH_STATIC,
     "A tensor on what a capsule, or a tensor of another library, holds."},
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule of it."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "Where it is, for DLPack."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_attributes[] = {
    {"__array_struct__", tensor_layout, NULL, "Its layout, for numpy.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "An input or output: a name, a datatype, a shape and bytes."},
    {Py_tp_new, (void *)tensor_make},
    {Py_tp_dealloc, (void *)tensor_free},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_attributes},
    {0, NULL},
};

PyType_Spec tensor_spec = {.name = "c_python_backend_utils.Tensor",
                           .basicsize = sizeof(struct tensor),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = tensor_slots};
