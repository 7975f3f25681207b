#include "core.h"

#include <string.h>

#include "send.h"
#include "tensor.h"
#include "triton/core/tritonserver.h"

struct response {
    PyObject_HEAD PyObject *tensors; /* a list, which never changes: another takes its place */
    PyObject *error;                 /* a TritonError, or NULL */
    PyObject *parameters;            /* JSON, a str */
};

bool response_is(PyObject *object)
{
    return PyObject_TypeCheck(object, core.response);
}

static void response_free(PyObject *self)
{
    struct response *r = (struct response *)self;
    Py_XDECREF(r->tensors);
    Py_XDECREF(r->error);
    Py_XDECREF(r->parameters);
    types_free(self);
}

/* The list of tensors that a response was made with; NULL with an exception. */
static PyObject *response_tensors(PyObject *given)
{
    if (!given)
        return PyList_New(0);
    PyObject *list = PySequence_List(given);
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        PyObject *each = PyList_GetItem(list, i);
        if (tensor_is(each))
            continue;
        if (each == Py_None)
            core_fail("Output tensor for inference response should not be empty.");
        else
            PyErr_Format(PyExc_TypeError, "output_tensors holds tensors, not %R",
                         (PyObject *)Py_TYPE(each));
        Py_CLEAR(list);
    }
    return list;
}

/* Parameters as JSON: a dict of str to bool, int or str. */
static PyObject *response_parameters(PyObject *given)
{
    if (!given || given == Py_None) {
        Py_INCREF(core.parameters);
        return core.parameters;
    }
    PyObject *module = PyImport_ImportModule("triton_python_backend_utils");
    PyObject *text = module ? PyObject_CallMethod(module, "_parameters", "O", given) : NULL;
    Py_XDECREF(module);
    return text;
}

static PyObject *answer_make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *tensors = NULL, *error = NULL, *parameters = NULL;
    static char *names[] = {"output_tensors", "error", "parameters", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOO:InferenceResponse", names, &tensors,
                                     &error, &parameters))
        return NULL;
    if (error == Py_None)
        error = NULL;
    if (error && PyObject_IsInstance(error, core.error) != 1) {
        PyErr_Format(PyExc_TypeError, "error is a TritonError, not %R", (PyObject *)Py_TYPE(error));
        return NULL;
    }
    struct response *r = (struct response *)PyType_GenericAlloc(type, 0);
    if (!r)
        return NULL;
    Py_XINCREF(error);
    r->error = error;
    r->tensors = response_tensors(tensors);
    r->parameters = r->tensors ? response_parameters(parameters) : NULL;
    if (!r->parameters) {
        Py_DECREF(r);
        return NULL;
    }
    return (PyObject *)r;
}

PyObject *response_read(struct wire_in *in, PyObject *record)
{
    struct response *r = (struct response *)PyType_GenericAlloc(core.response, 0);
    if (!r)
        return NULL;
    bool failed = wire_u32(in);
    if (failed) {
        uint32_t code = wire_u32(in);
        PyObject *text = core_str(in);
        r->error = text ? PyObject_CallFunction(core.error, "OI", text, code) : NULL;
        Py_XDECREF(text);
        Py_INCREF(core.nothing);
        r->parameters = core.nothing;
        r->tensors = r->error ? PyList_New(0) : NULL;
    } else {
        r->parameters = core_str(in);
        r->tensors = r->parameters ? core_list(in, tensor_read, record) : NULL;
    }
    if (!r->tensors) {
        Py_DECREF(r);
        return NULL;
    }
    return (PyObject *)r;
}

static bool response_write_error(struct wire_out *out, PyObject *error)
{
    PyObject *code = PyObject_CallMethod(error, "code", NULL);
    PyObject *number = code ? PyNumber_Long(code) : NULL;
    PyObject *text = number ? PyObject_CallMethod(error, "message", NULL) : NULL;
    bool well = text != NULL;
    if (well) {
        wire_put_u32(out, (uint32_t)PyLong_AsUnsignedLong(number));
        well = core_said(out, text) && !PyErr_Occurred();
    }
    Py_XDECREF(code);
    Py_XDECREF(number);
    Py_XDECREF(text);
    return well;
}

/* Drops the tensors that nobody asked for, as the reference does to the response itself.
 * returns  the others, a list that stays whoever else sends the response; NULL with an exception */
static PyObject *response_prune(struct response *r, PyObject *requested)
{
    PyObject *all = r->tensors;
    Py_ssize_t count = PyList_Size(all);
    Py_INCREF(all);
    PyObject *left = PyList_New(0);
    for (Py_ssize_t i = 0; left && i < count; i++) {
        PyObject *each = PyList_GetItem(all, i);
        int asked = PySequence_Contains(requested, tensor_name(each));
        if (asked < 0 || (asked && PyList_Append(left, each) != 0))
            Py_CLEAR(left);
    }
    if (left && PyList_Size(left) < count) {
        PyObject *before = r->tensors;
        Py_INCREF(left);
        r->tensors = left;
        Py_DECREF(before);
    }
    Py_DECREF(all);
    return left;
}

/* A response whose tensors could not be copied is that error instead, and no other has to do with
 * it. `start` is where it begins. */
static bool response_write_failure(struct wire_out *out, size_t start, struct lending *lent)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    lent->failed = false;
    out->used = start;
    wire_put_u32(out, true);
    wire_put_u32(out, TRITONSERVER_ERROR_INTERNAL);
    bool well = text && core_said(out, text);
    Py_XDECREF(text);
    return well;
}

bool response_write(struct wire_out *out, PyObject *response, PyObject *requested,
                    struct lending *lent)
{
    struct response *r = (struct response *)response;
    size_t start = out->used;
    PyObject *tensors = response_prune(r, requested);
    if (!tensors)
        return false;
    bool well;
    wire_put_u32(out, r->error != NULL);
    if (r->error)
        well = response_write_error(out, r->error);
    else
        well =
            core_text(out, r->parameters) &&
            ((tensor_write_all(out, tensors, lent) && (!lent->any || send_with(lent, tensors))) ||
             (lent->failed && response_write_failure(out, start, lent)));
    Py_DECREF(tensors);
    return well;
}

static PyObject *response_get_tensors(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PySequence_List(((struct response *)self)->tensors);
}

static PyObject *response_has_error(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct response *)self)->error != NULL);
}

static PyObject *response_get_error(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *error = ((struct response *)self)->error;
    if (!error)
        error = Py_None;
    Py_INCREF(error);
    return error;
}

static PyObject *response_get_parameters(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *parameters = ((struct response *)self)->parameters;
    Py_INCREF(parameters);
    return parameters;
}

static PyMethodDef response_methods[] = {
    {"output_tensors", response_get_tensors, METH_NOARGS, "Its tensors, a list."},
    {"has_error", response_has_error, METH_NOARGS, "Whether it is an error."},
    {"error", response_get_error, METH_NOARGS, "Its TritonError, or None."},
    {"parameters", response_get_parameters, METH_NOARGS, "Its parameters, JSON."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot response_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "The answer to a request: tensors, or an error."},
    {Py_tp_new, (void *)answer_make},
    {Py_tp_dealloc, (void *)response_free},
    {Py_tp_methods, response_methods},
    {0, NULL},
};

PyType_Spec response_spec = {.name = "c_python_backend_utils.InferenceResponse",
                             .basicsize = sizeof(struct response),
                             .flags = Py_TPFLAGS_DEFAULT,
                             .slots = response_slots};
