#include "core.h"

#include <string.h>

#include "tensor.h"
#include "triton/core/tritonserver.h"

bool request_is(PyObject *object)
{
    return PyObject_TypeCheck(object, core.request);
}

static void request_free(PyObject *self)
{
    struct request *r = (struct request *)self;
    Py_XDECREF(r->id);
    Py_XDECREF(r->correlation);
    Py_XDECREF(r->inputs);
    Py_XDECREF(r->outputs);
    Py_XDECREF(r->parameters);
    Py_XDECREF(r->model);
    Py_XDECREF(r->context);
    Py_XDECREF(r->sender);
    types_free(self);
}

static PyObject *request_read_correlation(struct wire_in *in)
{
    return wire_u32(in) ? core_str(in) : PyLong_FromUnsignedLongLong(wire_u64(in));
}

PyObject *request_read(struct wire_in *in, PyObject *record)
{
    struct request *r = (struct request *)PyType_GenericAlloc(core.request_made, 0);
    if (!r)
        return NULL;
    r->handle = wire_u64(in);
    r->trace = r->handle;
    r->release = TRITONSERVER_REQUEST_RELEASE_ALL;
    r->id = core_str(in);
    r->correlation = request_read_correlation(in);
    r->flags = wire_u32(in);
    r->timeout = wire_u64(in);
    r->parameters = core_str(in);
    r->context = core_str(in);
    r->outputs = core_list(in, core_str_within, record);
    r->inputs = core_list(in, tensor_read, record);
    r->sender = r->outputs ? sender_new(r->handle, r->outputs) : NULL;
    if (!r->id || !r->correlation || !r->parameters || !r->context || !r->inputs || !r->sender) {
        Py_DECREF(r);
        return NULL;
    }
    return (PyObject *)r;
}

/* InferenceRequest._make(id, correlation, inputs, outputs, model, version, flags, timeout, trace,
 * context, parameters): what Python
 * has checked. */
static PyObject *request_make(PyObject *self, PyObject *args)
{
    struct request *r = (struct request *)self;
    unsigned long long timeout, trace;
    long long version;
    unsigned int flags;
    PyObject *id, *correlation, *inputs, *outputs, *model, *context, *parameters;
    if (!PyArg_ParseTuple(args, "UOO!O!ULIKKUU", &id, &correlation, &PyList_Type, &inputs,
                          &PyList_Type, &outputs, &model, &version, &flags, &timeout, &trace,
                          &context, &parameters))
        return NULL;
    PyObject **places[] = {&r->id,    &r->correlation, &r->inputs,    &r->outputs,
                           &r->model, &r->context,     &r->parameters};
    PyObject *values[] = {id, correlation, inputs, outputs, model, context, parameters};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        Py_INCREF(values[i]);
        Py_XDECREF(*places[i]);
        *places[i] = values[i];
    }
    r->version = version;
    r->flags = flags;
    r->timeout = timeout;
    r->trace = trace;
    r->release = TRITONSERVER_REQUEST_RELEASE_ALL;
    Py_RETURN_NONE;
}

static bool request_write_correlation(struct wire_out *out, PyObject *correlation)
{
    bool text = PyUnicode_Check(correlation);
    wire_put_u32(out, text);
    if (text)
        return core_name(out, correlation);
    wire_put_u64(out, PyLong_AsUnsignedLongLong(correlation));
    return !PyErr_Occurred();
}

bool request_write(struct wire_out *out, PyObject *request, bool decoupled, struct lending *lent)
{
    struct request *r = (struct request *)request;
    wire_put_u32(out, decoupled);
    if (!core_name(out, r->model))
        return false;
    wire_put_u64(out, (uint64_t)r->version);
    wire_put_u64(out, r->trace);
    if (!core_name(out, r->id) || !request_write_correlation(out, r->correlation))
        return false;
    wire_put_u32(out, r->flags);
    wire_put_u64(out, r->timeout);
    if (!core_text(out, r->parameters))
        return false;
    Py_ssize_t count = PyList_Size(r->outputs);
    wire_put_u32(out, (uint32_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!core_name(out, PyList_GetItem(r->outputs, i)))
            return false;
    }
    return tensor_write_all(out, r->inputs, lent);
}

PyObject *request_input(PyObject *request, PyObject *name)
{
    PyObject *inputs = ((struct request *)request)->inputs;
    PyObject *found = Py_None;
    for (Py_ssize_t i = 0; i < PyList_Size(inputs); i++) {
        PyObject *tensor = PyList_GetItem(inputs, i);
        int same = PyObject_RichCompareBool(tensor_name(tensor), name, Py_EQ);
        if (same < 0)
            return NULL;
        if (same) {
            found = tensor;
            break;
        }
    }
    Py_INCREF(found);
    return found;
}

/* A getter: the field, or a copy of the list in it. */
#define REQUEST_GETTER(field)                                              \
    static PyObject *request_get_##field(PyObject *self, PyObject *unused) \
    {                                                                      \
        (void)unused;                                                      \
        PyObject *value = ((struct request *)self)->field;                 \
        if (!value)                                                        \
            return core_fail("this request was not made yet");             \
        if (PyList_CheckExact(value))                                      \
            return PySequence_List(value);                                 \
        Py_INCREF(value);                                                  \
        return value;                                                      \
    }
REQUEST_GETTER(id)
REQUEST_GETTER(correlation)
REQUEST_GETTER(inputs)
REQUEST_GETTER(outputs)
REQUEST_GETTER(parameters)
REQUEST_GETTER(context)

static PyObject *request_get_sender(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *sender = ((struct request *)self)->sender;
    if (!sender)
        return core_fail(
            "Unable to send response. Response sender has no reference to the decoupled "
            "state of the model.");
    Py_INCREF(sender);
    return sender;
}

static PyObject *request_get_flags(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((struct request *)self)->flags);
}

static PyObject *request_get_timeout(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct request *)self)->timeout);
}

static PyObject *request_get_handle(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct request *)self)->handle);
}

static PyObject *request_set_flags(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"flags", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "I:set_flags", names,
                                     &((struct request *)self)->flags))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *request_set_release(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"flags", NULL};
    struct request *r = (struct request *)self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "I:set_release_flags", names, &r->release))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef request_methods[] = {
    {"_make", request_make, METH_VARARGS, "Fill in a request to another model."},
    {"_handle", request_get_handle, METH_NOARGS, "The server's number for it."},
    {"_context", request_get_context, METH_NOARGS, "Its trace's context."},
    {"request_id", request_get_id, METH_NOARGS, "Its id."},
    {"correlation_id", request_get_correlation, METH_NOARGS, "The id of its sequence."},
    {"inputs", request_get_inputs, METH_NOARGS, "Its inputs, a list."},
    {"requested_output_names", request_get_outputs, METH_NOARGS,
     "The outputs that are asked for, a list."},
    {"parameters", request_get_parameters, METH_NOARGS, "Its parameters, JSON."},
    {"flags", request_get_flags, METH_NOARGS, "Its flags."},
    {"timeout", request_get_timeout, METH_NOARGS, "How long it may take, in microseconds."},
    {"get_response_sender", request_get_sender, METH_NOARGS, "What sends its responses."},
    {"set_flags", (PyCFunction)(void (*)(void))request_set_flags, METH_VARARGS | METH_KEYWORDS,
     "Set its flags."},
    {"set_release_flags", (PyCFunction)(void (*)(void))request_set_release,
     METH_VARARGS | METH_KEYWORDS, "Say what becomes of it after execute."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot request_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "A request."},
    {Py_tp_new, (void *)PyType_GenericNew},
    {Py_tp_dealloc, (void *)request_free},
    {Py_tp_methods, request_methods},
    {0, NULL},
};

PyType_Spec request_spec = {.name = "c_python_backend_utils.Request",
                            .basicsize = sizeof(struct request),
                            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                            .slots = request_slots};
