#include "types.h"

bool types_add(PyObject *module, const struct types_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PyObject *type = PyType_FromSpec(entries[i].spec);
        if (!type)
            return false;
        *entries[i].place = (PyTypeObject *)type;
        Py_INCREF(type);
        if (PyModule_AddObject(module, entries[i].name, type) != 0)
            return false;
    }
    return true;
}

void types_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}
