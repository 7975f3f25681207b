#include "core.h"

#include "send.h"
#include "triton/core/tritonserver.h"

PyObject *sender_new(uint64_t handle, PyObject *outputs)
{
    struct sender *s = (struct sender *)PyType_GenericAlloc(core.sender, 0);
    if (!s)
        return NULL;
    s->handle = handle;
    Py_INCREF(outputs);
    s->outputs = outputs;
    return (PyObject *)s;
}

static void sender_free(PyObject *self)
{
    struct sender *s = (struct sender *)self;
    if (!s->closed)
        channel_send(LINK_DROP, s->handle, NULL, 0);
    Py_XDECREF(s->outputs);
    types_free(self);
}

bool sender_count(struct sender *sender, bool response, uint32_t flags)
{
    bool final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL;
    const char *wrong = NULL;
    if (!core.decoupled && response && sender->count > 0)
        wrong = "Unable to send response. Non-decoupled model cannot send more than one response.";
    else if (!core.decoupled && !response && final && sender->count == 0)
        wrong = "Unable to send response. Non-decoupled model cannot send complete final before "
                "sending a response.";
    else if (sender->closed)
        wrong = "Unable to send response. Response sender has been closed.";
    if (wrong)
        return core_fail("%s", wrong) != NULL;
    sender->closed = final;
    sender->count++;
    return true;
}

/* Nothing was sent of what sender_count noted. */
static void sender_uncount(struct sender *sender, uint32_t flags)
{
    sender->count--;
    if (flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        sender->closed = false;
}

static PyObject *sender_send(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct sender *s = (struct sender *)self;
    PyObject *response = NULL;
    unsigned int flags = 0;
    static char *names[] = {"response", "flags", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OI:send", names, &response, &flags))
        return NULL;
    if (response == Py_None)
        response = NULL;
    if (response && !response_is(response)) {
        PyErr_Format(PyExc_TypeError, "response is an InferenceResponse, not %R",
                     (PyObject *)Py_TYPE(response));
        return NULL;
    }
    if (flags != TRITONSERVER_RESPONSE_COMPLETE_FINAL && flags != 0)
        return core_fail("Unable to send response. Unsupported flag provided.");
    if (flags == 0 && !response)
        return core_fail(
            "Inference Response object must be provided when the response flags is set to "
            "zero.");
    if (!sender_count(s, response != NULL, flags))
        return NULL;
    struct wire_out out = {0};
    struct lending lent = {0};
    wire_put_u64(&out, s->handle);
    wire_put_u32(&out, flags);
    wire_put_u32(&out, response != NULL);
    bool written = !response || response_write(&out, response, s->outputs, &lent);
    if (!written)
        send_drop(&out, &lent);
    if (!written || !send_record(LINK_SEND, &out, &lent, response, true)) {
        sender_uncount(s, flags);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *sender_is_cancelled(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *module = PyImport_ImportModule("triton_python_backend_utils");
    PyObject *told = module
                         ? PyObject_CallMethod(module, "_is_cancelled", "K",
                                               (unsigned long long)((struct sender *)self)->handle)
                         : NULL;
    Py_XDECREF(module);
    return told;
}

static PyMethodDef sender_methods[] = {
    {"send", (PyCFunction)(void (*)(void))sender_send, METH_VARARGS | METH_KEYWORDS,
     "Send a response, or the end of the responses."},
    {"is_cancelled", sender_is_cancelled, METH_NOARGS, "Whether the client has cancelled."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot sender_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "Sends the responses to a request."},
    {Py_tp_dealloc, (void *)sender_free},
    {Py_tp_methods, sender_methods},
    {0, NULL},
};

PyType_Spec sender_spec = {.name = "c_python_backend_utils.InferenceResponseSender",
                           .basicsize = sizeof(struct sender),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = sender_slots};
