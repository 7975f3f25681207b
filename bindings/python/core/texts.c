#include "texts.h"

#include "common/cpython/text.h"

#include <string.h>

/* A list of the elements as bytes, and what they take together. */
static PyObject *text_list(PyObject *const *items, uint64_t count, uint64_t *ret_bytes)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    uint64_t total = 0;
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *bytes = text_bytes(items[i] ? items[i] : Py_None, true);
        uint64_t size = bytes ? (uint64_t)PyBytes_Size(bytes) : 0;
        if (bytes && size > UINT32_MAX) {
            Py_CLEAR(bytes);
            PyErr_SetString(PyExc_ValueError, "an element of a tensor of texts is over 4 GiB long");
        }
        total += sizeof(uint32_t) + size;
        if (!bytes || PyList_SetItem(list, (Py_ssize_t)i, bytes) != 0)
            Py_CLEAR(list);
    }
    *ret_bytes = total;
    return list;
}

PyObject *texts_pack(void *items, uint64_t count, const void **ret_data, uint64_t *ret_bytes)
{
    PyObject *list = text_list(items, count, ret_bytes);
    PyObject *packed = list ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)*ret_bytes) : NULL;
    char *at = packed ? PyBytes_AsString(packed) : NULL;
    *ret_data = at;
    for (uint64_t i = 0; at && i < count; i++) {
        PyObject *bytes = PyList_GetItem(list, (Py_ssize_t)i);
        uint32_t size = (uint32_t)PyBytes_Size(bytes);
        memcpy(at, &size, sizeof size);
        memcpy(at + sizeof size, PyBytes_AsString(bytes), size);
        at += sizeof size + size;
    }
    Py_XDECREF(list);
    return packed;
}

PyObject *texts_unpack(const void *data, uint64_t bytes, uint64_t count)
{
    const char *at = data;
    uint32_t size = 0;
    if (count > bytes / sizeof size)
        return core_raise(TRITONSERVER_ERROR_INTERNAL, "a tensor of texts is cut short");
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        bool whole = bytes >= sizeof size;
        if (whole)
            memcpy(&size, at, sizeof size);
        whole = whole && bytes - sizeof size >= size;
        PyObject *text =
            whole ? PyBytes_FromStringAndSize(at + sizeof size, (Py_ssize_t)size)
                  : core_raise(TRITONSERVER_ERROR_INTERNAL, "a tensor of texts is cut short");
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) != 0) {
            Py_CLEAR(list);
            break;
        }
        at += sizeof size + size;
        bytes -= sizeof size + size;
    }
    return list;
}
