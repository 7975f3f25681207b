#include "text.h"

PyObject *text_bytes(PyObject *item, bool subclasses)
{
    if (subclasses ? PyBytes_Check(item) : PyBytes_CheckExact(item)) {
        Py_INCREF(item);
        return item;
    }
    PyObject *text = PyObject_Str(item);
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    Py_XDECREF(text);
    return bytes;
}
