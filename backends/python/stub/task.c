#include "task.h"

#include "send.h"
#include "triton/core/tritonserver.h"

static PyObject *task_requests(struct channel_record *record)
{
    struct wire_in in = {.at = record->data, .bytes = record->bytes};
    PyObject *owner = record_wrap(record);
    if (!owner)
        return NULL;
    PyObject *list = core_list(&in, request_read, owner);
    Py_DECREF(owner);
    return list;
}

static PyObject *task_texts(struct channel_record *record)
{
    struct wire_in in = {.at = record->data, .bytes = record->bytes};
    core.decoupled = core.decoupled || record->id == 1;
    PyObject *list = core_list(&in, core_str_within, NULL);
    PyObject *told = list ? Py_BuildValue("(IN)", record->kind, list) : NULL;
    channel_free(record);
    return told;
}

PyObject *task_take(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    for (;;) {
        struct channel_record *record = core_wait(0);
        if (!record)
            return core_fail("the link to the server is gone");
        if (record->kind == LINK_EXECUTE)
            return task_requests(record);
        if (record->kind != LINK_RELEASE)
            return task_texts(record);
        send_release(record->id);
        channel_free(record);
        if (PyErr_CheckSignals() != 0)
            return NULL;
    }
}

/* What becomes of one request after execute. */
static bool answer_put(struct wire_out *out, struct request *request, PyObject *response,
                       struct lending *lent)
{
    struct sender *sender = (struct sender *)request->sender;
    bool again = request->release == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE;
    wire_put_u32(out, request->release);
    wire_put_u32(out, response != Py_None);
    if (response != Py_None)
        return response_write(out, response, request->outputs, lent);
    sender->closed = sender->closed || again; /* what comes again has another one */
    return true;
}

PyObject *task_answer(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *requests, *responses;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &requests, &responses))
        return NULL;
    struct wire_out out = {0};
    struct lending lent = {0};
    Py_ssize_t count = PyList_Size(requests);
    wire_put_u32(&out, 1);
    wire_put_u32(&out, (uint32_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *response = responses == Py_None ? Py_None : PyList_GetItem(responses, i);
        if (!response ||
            !answer_put(&out, (struct request *)PyList_GetItem(requests, i), response, &lent)) {
            send_drop(&out, &lent);
            return NULL;
        }
    }
    if (!send_record(LINK_EXECUTED, &out, &lent, responses, false))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *task_check(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *requests, *responses;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &requests, &PyList_Type, &responses))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(requests); i++) {
        struct request *request = (struct request *)PyList_GetItem(requests, i);
        PyObject *response = PyList_GetItem(responses, i);
        if (response == Py_None)
            continue;
        PyObject *type = PyObject_Str((PyObject *)Py_TYPE(response));
        PyObject *text = NULL;
        if (type && request->release == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            text = PyUnicode_FromFormat(
                "Expected a None object in the execute function return list for "
                "reschduled request, found type '%U'.",
                type);
        else if (type && !response_is(response))
            text = PyUnicode_FromFormat(
                "Expected an 'InferenceResponse' object in the execute function "
                "return list, found type '%U'.",
                type);
        Py_XDECREF(type);
        if (text)
            PyErr_SetObject(core.exception, text);
        Py_XDECREF(text);
        if (PyErr_Occurred() || !sender_count((struct sender *)request->sender, true,
                                              TRITONSERVER_RESPONSE_COMPLETE_FINAL))
            return NULL;
    }
    Py_RETURN_NONE;
}

/* Sends a text: whether it is of what went well, and what. */
static PyObject *task_text(uint32_t kind, bool well, PyObject *text, bool wait)
{
    struct wire_out out = {0};
    struct lending lent = {0};
    wire_put_u32(&out, well);
    if (!(well ? core_text(&out, text) : core_said(&out, text))) {
        send_drop(&out, &lent);
        return NULL;
    }
    if (!send_record(kind, &out, &lent, NULL, wait))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *task_fail(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *requests, *text;
    if (!PyArg_ParseTuple(args, "O!U", &PyList_Type, &requests, &text))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(requests); i++)
        ((struct sender *)((struct request *)PyList_GetItem(requests, i))->sender)->closed = true;
    return task_text(LINK_EXECUTED, false, text, false);
}

PyObject *task_result(PyObject *self, PyObject *args)
{
    (void)self;
    int well;
    PyObject *text;
    if (!PyArg_ParseTuple(args, "pU", &well, &text))
        return NULL;
    return task_text(LINK_RESULT, well, text, true);
}
