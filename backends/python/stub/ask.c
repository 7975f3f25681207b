#include "ask.h"

#include "../calls.h"
#include "send.h"

/* Waits for an answer. */
static struct channel_record *ask_wait(uint64_t id)
{
    struct channel_record *record = core_wait(id);
    while (record && record->kind == LINK_RELEASE) {
        send_release(id);
        channel_free(record);
        record = core_wait(id);
    }
    return record;
}

/* -- calls -- */

static bool ask_put(struct wire_out *out, PyObject *value)
{
    char *at;
    Py_ssize_t length;
    if (PyFloat_Check(value)) {
        wire_put_u32(out, CALL_DOUBLE);
        wire_put_double(out, PyFloat_AsDouble(value));
        return true;
    }
    if (PyLong_Check(value)) {
        wire_put_u32(out, CALL_INT);
        wire_put_u64(out, (uint64_t)PyLong_AsLongLong(value));
        return !PyErr_Occurred();
    }
    wire_put_u32(out, CALL_TEXT);
    if (PyUnicode_Check(value))
        return core_text(out, value);
    if (PyBytes_AsStringAndSize(value, &at, &length) != 0)
        return false;
    wire_put_text(out, at, (size_t)length);
    return true;
}

static PyObject *ask_result(struct wire_in *in)
{
    switch (wire_u32(in)) {
    case CALL_INT:
        return PyLong_FromLongLong((long long)wire_u64(in));
    case CALL_DOUBLE:
        return PyFloat_FromDouble(wire_double(in));
    case CALL_TEXT:
        return core_str(in);
    default: {
        PyObject *text = core_str(in);
        if (text)
            PyErr_SetObject(core.exception, text);
        Py_XDECREF(text);
        return NULL;
    }
    }
}

/* Sends a call, and waits for its result. */
static PyObject *ask_send(struct wire_out *out)
{
    struct lending lent = {0};
    uint64_t id = channel_expect();
    PyObject *result = NULL;
    if (send_numbered(LINK_CALL, id, out, &lent, NULL)) {
        struct channel_record *record = ask_wait(id);
        struct wire_in in = {.at = record ? record->data : "", .bytes = record ? record->bytes : 0};
        result = record ? ask_result(&in) : core_fail("the link to the server is gone");
        channel_free(record);
    }
    channel_forget(id);
    return result;
}

/* Writes a call of args: an operation and its values. */
static bool ask_write(struct wire_out *out, PyObject *args)
{
    PyObject *op = PyTuple_GetItem(args, 0);
    Py_ssize_t count = PyTuple_Size(args);
    wire_put_u32(out, op ? (uint32_t)PyLong_AsUnsignedLong(op) : 0);
    wire_put_u32(out, (uint32_t)(count - 1));
    bool well = !PyErr_Occurred();
    for (Py_ssize_t i = 1; well && i < count; i++)
        well = ask_put(out, PyTuple_GetItem(args, i));
    if (!well)
        wire_fini(out);
    return well;
}

PyObject *ask_call(PyObject *self, PyObject *args)
{
    (void)self;
    struct wire_out out = {0};
    return ask_write(&out, args) ? ask_send(&out) : NULL;
}

PyObject *ask_tell(PyObject *self, PyObject *args)
{
    (void)self;
    struct wire_out out = {0};
    struct lending lent = {0};
    if (!ask_write(&out, args) || !send_record(LINK_CALL, &out, &lent, NULL, true))
        return NULL;
    Py_RETURN_NONE;
}

uint64_t ask_room(uint64_t bytes)
{
    struct wire_out out = {0};
    wire_put_u32(&out, CALL_ROOM);
    wire_put_u32(&out, 1);
    wire_put_u32(&out, CALL_INT);
    wire_put_u64(&out, bytes);
    PyObject *told = ask_send(&out);
    uint64_t place = told ? PyLong_AsUnsignedLongLong(told) : 0;
    Py_XDECREF(told);
    return place;
}

/* -- requests to other models -- */

PyObject *ask_infer(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *request;
    int decoupled;
    if (!PyArg_ParseTuple(args, "Op", &request, &decoupled))
        return NULL;
    struct wire_out out = {0};
    struct lending lent = {0};
    if (!request_is(request) || !((struct request *)request)->model)
        return core_fail("only a request that was made for another model can be executed");
    if (!request_write(&out, request, decoupled, &lent)) {
        send_drop(&out, &lent);
        return NULL;
    }
    uint64_t id = channel_expect();
    if (!send_numbered(LINK_INFER, id, &out, &lent, request)) {
        channel_forget(id);
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(id);
}

PyObject *ask_nested(PyObject *self, PyObject *args)
{
    (void)self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "K", &id))
        return NULL;
    struct channel_record *record = ask_wait(id);
    if (!record)
        return core_fail("nothing more comes to this request");
    struct wire_in in = {.at = record->data, .bytes = record->bytes};
    PyObject *owner = record_wrap(record);
    if (!owner)
        return NULL;
    bool last = wire_u32(&in);
    PyObject *response = Py_None;
    Py_INCREF(response);
    if (wire_u32(&in)) {
        Py_DECREF(response);
        response = response_read(&in, owner);
    }
    Py_DECREF(owner);
    if (last)
        channel_forget(id);
    return response ? Py_BuildValue("(NN)", response, PyBool_FromLong(last)) : NULL;
}

PyObject *ask_forget(PyObject *self, PyObject *args)
{
    (void)self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "K", &id))
        return NULL;
    channel_forget(id);
    Py_RETURN_NONE;
}
