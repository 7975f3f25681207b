#include "fill.h"

#include "array.h"

#include <string.h>

/* A str in UTF-8, as long as the object that is returned. What follows a zero byte in it would not
 * be seen. */
static PyObject *fill_text(PyObject *text, const char **ret)
{
    PyObject *bytes = PyUnicode_Check(text) ? PyUnicode_AsUTF8String(text) : NULL;
    if (!bytes && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "expected a str, found %R", text);
    *ret = bytes ? PyBytes_AsString(bytes) : NULL;
    if (bytes && strlen(*ret) != (size_t)PyBytes_Size(bytes)) {
        PyErr_Format(PyExc_ValueError, "%R holds a zero byte", text);
        Py_CLEAR(bytes);
    }
    return bytes;
}

static bool fill_input(TRITONSERVER_InferenceRequest *request, const char *name, PyObject *value,
                       PyObject *kept)
{
    struct array a = {0};
    if (!array_read(value, &a)) {
        core_wrap("input", name);
        return false;
    }
    bool well = PyList_Append(kept, a.owner) == 0;
    Py_DECREF(a.owner);
    TRITONSERVER_Error *e = NULL;
    if (well)
        e = TRITONSERVER_InferenceRequestAddInput(request, name, a.datatype, a.shape, a.rank);
    if (well && !e)
        e = TRITONSERVER_InferenceRequestAppendInputData(request, name, a.data, a.bytes,
                                                         TRITONSERVER_MEMORY_CPU, 0);
    return well && core_check(e);
}

bool fill_inputs(TRITONSERVER_InferenceRequest *request, PyObject *inputs, PyObject *kept)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool well = true;
    while (well && PyDict_Next(inputs, &at, &key, &value)) {
        const char *name;
        PyObject *text = fill_text(key, &name);
        Py_INCREF(value);
        well = text && fill_input(request, name, value, kept);
        Py_DECREF(value);
        Py_XDECREF(text);
    }
    return well;
}

bool fill_outputs(TRITONSERVER_InferenceRequest *request, PyObject *outputs)
{
    Py_ssize_t count = outputs == Py_None ? 0 : PyTuple_Size(outputs);
    bool well = count >= 0;
    for (Py_ssize_t i = 0; well && i < count; i++) {
        const char *name;
        PyObject *text = fill_text(PyTuple_GetItem(outputs, i), &name);
        well = text && core_check(TRITONSERVER_InferenceRequestAddRequestedOutput(request, name));
        Py_XDECREF(text);
    }
    return well;
}

static bool fill_sequence(TRITONSERVER_InferenceRequest *request, PyObject *sequence)
{
    if (PyUnicode_Check(sequence)) {
        const char *name;
        PyObject *text = fill_text(sequence, &name);
        bool well =
            text && core_check(TRITONSERVER_InferenceRequestSetCorrelationIdString(request, name));
        Py_XDECREF(text);
        return well;
    }
    unsigned long long number = PyLong_AsUnsignedLongLong(sequence);
    return !PyErr_Occurred() &&
           core_check(TRITONSERVER_InferenceRequestSetCorrelationId(request, number));
}

static bool fill_parameter(TRITONSERVER_InferenceRequest *request, const char *name,
                           PyObject *value)
{
    if (PyBool_Check(value))
        return core_check(
            TRITONSERVER_InferenceRequestSetBoolParameter(request, name, value == Py_True));
    if (PyFloat_Check(value))
        return core_check(TRITONSERVER_InferenceRequestSetDoubleParameter(request, name,
                                                                          PyFloat_AsDouble(value)));
    if (PyLong_Check(value)) {
        long long number = PyLong_AsLongLong(value);
        return !PyErr_Occurred() &&
               core_check(TRITONSERVER_InferenceRequestSetIntParameter(request, name, number));
    }
    const char *text;
    PyObject *bytes = fill_text(value, &text);
    bool well =
        bytes && core_check(TRITONSERVER_InferenceRequestSetStringParameter(request, name, text));
    Py_XDECREF(bytes);
    return well;
}

static bool fill_parameters(TRITONSERVER_InferenceRequest *request, PyObject *parameters)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    bool well = true;
    while (well && PyDict_Next(parameters, &at, &key, &value)) {
        const char *name;
        PyObject *text = fill_text(key, &name);
        well = text && fill_parameter(request, name, value);
        Py_XDECREF(text);
    }
    return well;
}

bool fill_settings(TRITONSERVER_InferenceRequest *request, PyObject *settings)
{
    if (settings == Py_None)
        return true;
    const char *id;
    PyObject *sequence, *parameters;
    unsigned flags;
    unsigned long long priority, timeout_us;
    if (!PyArg_ParseTuple(settings, "sOIKKO", &id, &sequence, &flags, &priority, &timeout_us,
                          &parameters))
        return false;
    return core_check(TRITONSERVER_InferenceRequestSetId(request, id)) &&
           fill_sequence(request, sequence) &&
           core_check(TRITONSERVER_InferenceRequestSetFlags(request, flags)) &&
           core_check(TRITONSERVER_InferenceRequestSetPriorityUInt64(request, priority)) &&
           core_check(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, timeout_us)) &&
           (parameters == Py_None || fill_parameters(request, parameters));
}
