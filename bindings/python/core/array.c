#include "array.h"

#include "common/cpython/layout.h"
#include "texts.h"

/* The layout of an array that is contiguous and in the machine's order of bytes, made so where it
 * is not.
 * ret_array  owned by the caller
 * returns    the capsule with the layout; NULL with an exception */
static PyObject *array_layout(PyObject *given, PyObject **ret_array, struct layout **ret_layout)
{
    PyObject *capsule = layout_of(given, LAYOUT_CONTIGUOUS | LAYOUT_NATIVE, "US", core.plain,
                                  ret_array, ret_layout);
    if (!capsule && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "the array has no contiguous form");
    return capsule;
}

/* Takes numbers where they lie: the array stays as long as the owner. */
static bool array_take(const struct layout *layout, PyObject *array, struct array *ret)
{
    if (ret->datatype == TRITONSERVER_TYPE_INVALID)
        ret->datatype = layout_datatype(layout);
    if ((int)ret->datatype >= LAYOUT_TYPES || ret->datatype <= TRITONSERVER_TYPE_INVALID ||
        layout_types[ret->datatype].bytes != layout->item_bytes) {
        PyErr_Format(PyExc_TypeError,
                     "an array of kind '%c' with %d bytes an element is of no datatype of a tensor",
                     layout->kind, layout->item_bytes);
        return false;
    }
    ret->data = layout->data;
    ret->bytes = (uint64_t)layout->item_bytes;
    for (uint64_t i = 0; i < ret->rank; i++)
        ret->bytes *= (uint64_t)ret->shape[i];
    Py_INCREF(array);
    ret->owner = array;
    return true;
}

static bool array_read_as(PyObject *given, TRITONSERVER_DataType datatype, struct array *ret)
{
    PyObject *array;
    struct layout *layout;
    PyObject *capsule = array_layout(given, &array, &layout);
    if (!capsule)
        return false;
    bool well = layout->rank <= ARRAY_MAX_DIMS;
    if (!well)
        PyErr_Format(PyExc_TypeError, "an array of %d dimensions; %d are the most", layout->rank,
                     ARRAY_MAX_DIMS);
    *ret = (struct array){.datatype = datatype, .rank = (uint64_t)layout->rank};
    uint64_t count = 1;
    for (uint64_t i = 0; well && i < ret->rank; i++) {
        ret->shape[i] = layout->shape[i];
        count *= (uint64_t)layout->shape[i];
    }
    if (well && layout->kind == 'O') {
        ret->datatype = TRITONSERVER_TYPE_BYTES;
        ret->owner = texts_pack(layout->data, count, &ret->data, &ret->bytes);
        well = ret->owner != NULL;
    } else if (well) {
        well = array_take(layout, array, ret);
    }
    Py_DECREF(capsule);
    Py_DECREF(array);
    return well;
}

bool array_read(PyObject *value, struct array *ret)
{
    if (!PyTuple_Check(value))
        return array_read_as(value, TRITONSERVER_TYPE_INVALID, ret);
    int datatype;
    PyObject *array;
    return PyArg_ParseTuple(value, "iO", &datatype, &array) &&
           array_read_as(array, (TRITONSERVER_DataType)datatype, ret);
}

/* Memory that an array is a view of. */
struct memory {
    PyObject_HEAD PyObject *owner;
    struct layout layout;
    Py_ssize_t sizes[]; /* of the layout */
};

static void memory_free(PyObject *self)
{
    Py_XDECREF(((struct memory *)self)->owner);
    types_free(self);
}

static void structure_free(PyObject *capsule)
{
    Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
}

/* __array_struct__ - the layout, in a capsule that keeps this object. */
static PyObject *memory_structure(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *capsule = PyCapsule_New(&((struct memory *)self)->layout, NULL, structure_free);
    if (!capsule)
        return NULL;
    Py_INCREF(self);
    PyCapsule_SetContext(capsule, self);
    return capsule;
}

static PyGetSetDef memory_attributes[] = {{"__array_struct__", memory_structure, NULL, NULL, NULL},
                                          {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, memory_free}, {Py_tp_getset, memory_attributes}, {0, NULL}};
PyType_Spec memory_spec = {.name = "nereid._core.Memory",
                           .basicsize = (int)sizeof(struct memory),
                           .itemsize = (int)sizeof(Py_ssize_t),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = memory_slots};

/* The number of elements; false with an exception where it does not fit the bytes. */
static bool array_count(TRITONSERVER_DataType datatype, const int64_t *shape, uint64_t rank,
                        uint64_t bytes, uint64_t *ret)
{
    uint64_t count = 1;
    bool well = rank <= ARRAY_MAX_DIMS && datatype > 0 && (int)datatype < LAYOUT_TYPES;
    for (uint64_t i = 0; well && i < rank; i++)
        well = shape[i] >= 0 && !__builtin_mul_overflow(count, (uint64_t)shape[i], &count);
    uint64_t needed = 0;
    if (well && datatype != TRITONSERVER_TYPE_BYTES)
        well = !__builtin_mul_overflow(count, layout_types[datatype].bytes, &needed) &&
               needed == bytes && bytes <= PY_SSIZE_T_MAX;
    if (!well)
        core_raise(TRITONSERVER_ERROR_INTERNAL, "a tensor's shape and bytes do not fit together");
    *ret = count;
    return well;
}

static PyObject *array_texts(const int64_t *shape, uint64_t rank, uint64_t count, const void *data,
                             uint64_t bytes)
{
    PyObject *list = texts_unpack(data, bytes, count);
    PyObject *dims = list ? PyTuple_New((Py_ssize_t)rank) : NULL;
    for (uint64_t i = 0; dims && i < rank; i++)
        if (PyTuple_SetItem(dims, (Py_ssize_t)i, PyLong_FromLongLong(shape[i])) != 0)
            Py_CLEAR(dims);
    PyObject *made = dims ? PyObject_CallFunctionObjArgs(core.texts, list, dims, NULL) : NULL;
    Py_XDECREF(dims);
    Py_XDECREF(list);
    return made;
}

PyObject *array_view(PyObject *owner, TRITONSERVER_DataType datatype, const int64_t *shape,
                     uint64_t rank, void *data, uint64_t bytes, bool writable)
{
    uint64_t count;
    if (!array_count(datatype, shape, rank, bytes, &count))
        return NULL;
    if (datatype == TRITONSERVER_TYPE_BYTES)
        return array_texts(shape, rank, count, data, bytes);
    struct memory *m = (struct memory *)PyType_GenericAlloc(core.memory, (Py_ssize_t)(2 * rank));
    if (!m)
        return NULL;
    static char nothing[64]; /* an array without elements has an address still */
    Py_INCREF(owner);
    m->owner = owner;
    layout_set(&m->layout, m->sizes, datatype, shape, rank, data ? data : nothing);
    if (writable)
        m->layout.flags |= LAYOUT_WRITABLE;
    PyObject *array = PyObject_CallFunctionObjArgs(core.asarray, (PyObject *)m, NULL);
    Py_DECREF(m);
    if (array && datatype == TRITONSERVER_TYPE_BF16) {
        PyObject *wide = PyObject_CallFunctionObjArgs(core.bfloat16, array, NULL);
        Py_DECREF(array);
        array = wide;
    }
    return array;
}
