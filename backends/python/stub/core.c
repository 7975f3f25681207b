#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/core/tritonserver.h"

#include "../calls.h"

struct core core;

void *core_fail(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    PyErr_SetString(core.exception ? core.exception : PyExc_RuntimeError, text);
    return NULL;
}

bool core_numpy(void)
{
    if (core.object)
        return true;
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (!numpy)
        return false;
    core.ndarray = PyObject_GetAttrString(numpy, "ndarray");
    core.asarray = PyObject_GetAttrString(numpy, "asarray");
    core.ascontiguous = PyObject_GetAttrString(numpy, "ascontiguousarray");
    core.empty = PyObject_GetAttrString(numpy, "empty");
    core.object = PyObject_GetAttrString(numpy, "object_");
    Py_DECREF(numpy);
    return core.ndarray && core.asarray && core.ascontiguous && core.empty && core.object;
}

bool core_text(struct wire_out *out, PyObject *text)
{
    /* Lone surrogates, as in the name of a file that is not UTF-8, are escaped. */
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    char *at;
    Py_ssize_t length;
    bool well = bytes && PyBytes_AsStringAndSize(bytes, &at, &length) == 0;
    if (well)
        wire_put_text(out, at, (size_t)length);
    Py_XDECREF(bytes);
    return well;
}

PyObject *core_str(struct wire_in *in)
{
    size_t length;
    const char *text = wire_text(in, &length);
    PyObject *common = length == 0 ? core.nothing : NULL;
    if (length == 2 && memcmp(text, "{}", 2) == 0)
        common = core.parameters;
    if (common) {
        Py_INCREF(common);
        return common;
    }
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
}

PyObject *record_wrap(struct channel_record *record)
{
    struct record_object *made = (struct record_object *)PyType_GenericAlloc(core.record, 0);
    if (made)
        made->record = record;
    else
        channel_free(record);
    return (PyObject *)made;
}

static void record_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    channel_free(((struct record_object *)self)->record);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot record_slots[] = {{Py_tp_dealloc, (void *)record_free}, {0, NULL}};
PyType_Spec record_spec = {.name = "c_python_backend_utils.Record",
                           .basicsize = sizeof(struct record_object),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = record_slots};

static struct channel_record *wait_for(uint64_t id)
{
    struct channel_record *record;
    Py_BEGIN_ALLOW_THREADS record = channel_wait(id);
    Py_END_ALLOW_THREADS return record;
}

static void core_release(uint64_t id)
{
    PyObject *number = PyLong_FromUnsignedLongLong(id);
    if (!number || PyDict_DelItem(core.sent, number) != 0)
        PyErr_Clear();
    Py_XDECREF(number);
}

static void buffer_free(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, NULL));
}

/* Keeps what a record points at, until core_release. */
static bool core_keep(uint64_t id, PyObject *kept, struct wire_out *out, PyObject *places)
{
    PyObject *buffer = Py_None;
    Py_INCREF(buffer);
    if (out->at) {
        Py_DECREF(buffer);
        buffer = PyCapsule_New(out->at, NULL, buffer_free);
    }
    PyObject *number = PyLong_FromUnsignedLongLong(id);
    PyObject *all = buffer && number
                        ? PyTuple_Pack(3, kept ? kept : Py_None, buffer, places ? places : Py_None)
                        : NULL;
    bool well = all && PyDict_SetItem(core.sent, number, all) == 0;
    Py_XDECREF(all);
    Py_XDECREF(number);
    Py_XDECREF(buffer);
    return well;
}

/* Sends a record that has to be kept. id is its own, or 0. */
static bool send_kept(uint32_t kind, uint64_t id, struct wire_out *out, struct lending *lent,
                      PyObject *kept)
{
    struct link_far far = {.at = (uint64_t)(uintptr_t)out->at, .bytes = out->used};
    bool is_far = out->used > LINK_RECORD_MAX;
    if (is_far && !channel_is_read())
        far.at = share_bytes(out->at, out->used, lent);
    bool well = far.at && core_keep(id, kept, out, lent->places);
    if (!well)
        return false;
    well = channel_send(kind | LINK_KEPT | (is_far ? LINK_FAR : 0), id,
                        is_far ? (void *)&far : out->at, is_far ? sizeof far : out->used);
    *out = (struct wire_out){0}; /* core.sent has its memory */
    return well || core_fail("the link to the server is gone, as in a process that a model forks");
}

static bool send_wait(uint64_t id)
{
    struct channel_record *record = wait_for(id);
    bool well = record != NULL;
    channel_free(record);
    core_release(id);
    return well || core_fail("the link to the server is gone");
}

static bool send_with(uint32_t kind, uint64_t id, struct wire_out *out, struct lending *lent,
                      PyObject *kept)
{
    if (lent->any || out->used > LINK_RECORD_MAX)
        return send_kept(kind, id, out, lent, kept);
    return channel_send(kind, id, out->at, out->used) ||
           core_fail("the link to the server is gone, as in a process that a model forks");
}

static bool send_end(struct wire_out *out, struct lending *lent, bool well)
{
    wire_fini(out);
    Py_CLEAR(lent->places);
    return well;
}

bool send_record(uint32_t kind, struct wire_out *out, struct lending *lent, PyObject *kept,
                 bool wait)
{
    if (out->failed) {
        PyErr_NoMemory();
        return send_end(out, lent, false);
    }
    bool is_kept = lent->any || out->used > LINK_RECORD_MAX;
    uint64_t id = !is_kept ? 0 : wait ? channel_expect() : channel_number();
    bool well = send_with(kind, id, out, lent, kept);
    if (is_kept && wait) {
        well = well && send_wait(id);
        channel_forget(id);
    }
    return send_end(out, lent, well);
}

/* -- what Python calls -- */

static PyObject *core_take_requests(struct channel_record *record)
{
    struct wire_in in = {.at = record->data, .bytes = record->bytes};
    PyObject *owner = record_wrap(record);
    if (!owner)
        return NULL;
    uint32_t count = wire_count(&in);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *request = request_read(&in, owner);
        if (!request)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, request);
    }
    Py_DECREF(owner);
    return list;
}

static PyObject *core_take_texts(struct channel_record *record)
{
    struct wire_in in = {.at = record->data, .bytes = record->bytes};
    uint32_t kind = record->kind;
    core.decoupled = core.decoupled || record->id == 1;
    PyObject *list = PyList_New(0);
    uint32_t count = wire_count(&in);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *text = core_str(&in);
        if (!text || PyList_Append(list, text) != 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    channel_free(record);
    PyObject *told = list ? Py_BuildValue("(IO)", kind, list) : NULL;
    Py_XDECREF(list);
    return told;
}

/* take() - the next thing to do: a list of requests, or (kind, texts). */
static PyObject *core_take(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    for (;;) {
        struct channel_record *record = wait_for(0);
        if (!record)
            return core_fail("the link to the server is gone");
        if (record->kind == LINK_EXECUTE)
            return core_take_requests(record);
        if (record->kind != LINK_RELEASE)
            return core_take_texts(record);
        core_release(record->id);
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

/* answer(requests, responses) - the requests were executed; responses: a list as long, or None. */
static PyObject *core_answer(PyObject *self, PyObject *args)
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
            send_end(&out, &lent, false);
            return NULL;
        }
    }
    if (!send_record(LINK_EXECUTED, &out, &lent, responses, false))
        return NULL;
    Py_RETURN_NONE;
}

/* check(requests, responses) - what may be returned was; counts the responses. */
static PyObject *core_check(PyObject *self, PyObject *args)
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

/* fail(requests, text) - none of the requests that are open is answered but with this. */
static PyObject *core_fail_requests(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *requests, *text;
    if (!PyArg_ParseTuple(args, "O!U", &PyList_Type, &requests, &text))
        return NULL;
    struct wire_out out = {0};
    struct lending lent = {0};
    wire_put_u32(&out, 0);
    if (!core_text(&out, text)) {
        wire_fini(&out);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(requests); i++)
        ((struct sender *)((struct request *)PyList_GetItem(requests, i))->sender)->closed = true;
    if (!send_record(LINK_EXECUTED, &out, &lent, NULL, false))
        return NULL;
    Py_RETURN_NONE;
}

/* result(well, text) - what came of completing, initializing or finalizing. */
static PyObject *core_result(PyObject *self, PyObject *args)
{
    (void)self;
    int well;
    PyObject *text;
    if (!PyArg_ParseTuple(args, "pU", &well, &text))
        return NULL;
    struct wire_out out = {0};
    struct lending lent = {0};
    wire_put_u32(&out, (uint32_t)well);
    if (!core_text(&out, text)) {
        wire_fini(&out);
        return NULL;
    }
    if (!send_record(LINK_RESULT, &out, &lent, NULL, true))
        return NULL;
    Py_RETURN_NONE;
}

static bool call_put(struct wire_out *out, PyObject *value)
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

static PyObject *call_result(struct wire_in *in)
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

static PyObject *call_make(uint32_t op, PyObject *args, Py_ssize_t from, bool answers)
{
    struct wire_out out = {0};
    struct lending lent = {0};
    wire_put_u32(&out, op);
    Py_ssize_t count = args ? PyTuple_Size(args) : from;
    wire_put_u32(&out, (uint32_t)(count - from));
    for (Py_ssize_t i = from; i < count; i++) {
        if (!call_put(&out, PyTuple_GetItem(args, i))) {
            wire_fini(&out);
            return NULL;
        }
    }
    if (!answers) {
        if (!send_record(LINK_CALL, &out, &lent, NULL, true))
            return NULL;
        Py_RETURN_NONE;
    }
    uint64_t id = channel_expect();
    PyObject *result = NULL;
    bool sent = send_end(&out, &lent, send_with(LINK_CALL, id, &out, &lent, NULL));
    struct channel_record *record = sent ? wait_for(id) : NULL;
    while (record && record->kind == LINK_RELEASE) {
        core_release(id);
        channel_free(record);
        record = wait_for(id);
    }
    if (record) {
        struct wire_in in = {.at = record->data, .bytes = record->bytes};
        result = call_result(&in);
    } else if (!PyErr_Occurred()) {
        core_fail("the link to the server is gone");
    }
    channel_free(record);
    channel_forget(id);
    return result;
}

static PyObject *core_call_args(PyObject *args, bool answers)
{
    PyObject *op = PyTuple_GetItem(args, 0);
    uint32_t number = op ? (uint32_t)PyLong_AsUnsignedLong(op) : 0;
    return PyErr_Occurred() ? NULL : call_make(number, args, 1, answers);
}

/* call(op, *args) - ask the server; args are int, float, str or bytes. */
static PyObject *core_call(PyObject *self, PyObject *args)
{
    (void)self;
    return core_call_args(args, true);
}

/* tell(op, *args) - the same without an answer. */
static PyObject *core_tell(PyObject *self, PyObject *args)
{
    (void)self;
    return core_call_args(args, false);
}

uint64_t share_bytes(const void *bytes, uint64_t count, struct lending *lent)
{
    PyObject *args = Py_BuildValue("(K)", (unsigned long long)count);
    PyObject *told = args ? call_make(CALL_ROOM, args, 0, true) : NULL;
    Py_XDECREF(args);
    uint64_t place = told ? PyLong_AsUnsignedLongLong(told) : 0;
    Py_XDECREF(told);
    char *at = channel_at(place, count);
    struct channel_record *record = at ? calloc(1, sizeof *record) : NULL;
    if (!record && !PyErr_Occurred())
        core_fail("no shared memory for %llu bytes", (unsigned long long)count);
    if (!record)
        return 0;
    memcpy(at, bytes, count);
    record->place = place;
    PyObject *owner = record_wrap(record);
    if (!lent->places)
        lent->places = PyList_New(0);
    bool well = owner && lent->places && PyList_Append(lent->places, owner) == 0;
    Py_XDECREF(owner);
    return well ? place : 0;
}

/* infer(request, decoupled) - send a nested request; returns its id, for nested(). */
static PyObject *core_infer(PyObject *self, PyObject *args)
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
        send_end(&out, &lent, false);
        return NULL;
    }
    uint64_t id = channel_expect();
    if (!send_end(&out, &lent, send_with(LINK_INFER, id, &out, &lent, request))) {
        channel_forget(id);
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(id);
}

/* nested(id) - wait for a response: (response or None, whether it is the last). */
static PyObject *core_nested(PyObject *self, PyObject *args)
{
    (void)self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "K", &id))
        return NULL;
    struct channel_record *record = wait_for(id);
    while (record && record->kind == LINK_RELEASE) {
        core_release(id);
        channel_free(record);
        record = wait_for(id);
    }
    if (!record)
        return core_fail("nothing more comes to this request");
    struct wire_in in = {.at = record->data, .bytes = record->bytes};
    PyObject *owner = record_wrap(record);
    bool last = wire_u32(&in);
    PyObject *response = Py_None;
    Py_INCREF(response);
    if (wire_u32(&in)) {
        Py_DECREF(response);
        response = owner ? response_read(&in, owner) : NULL;
    }
    Py_XDECREF(owner);
    if (last)
        channel_forget(id);
    PyObject *told = response ? Py_BuildValue("(NN)", response, PyBool_FromLong(last)) : NULL;
    return told;
}

/* forget(id) - nobody calls nested(id) again. */
static PyObject *core_forget(PyObject *self, PyObject *args)
{
    (void)self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "K", &id))
        return NULL;
    channel_forget(id);
    Py_RETURN_NONE;
}

/* get_input_tensor_by_name(inference_request, name) */
static PyObject *core_input(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)self;
    PyObject *request, *name;
    static char *names[] = {"inference_request", "name", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:get_input_tensor_by_name", names, &request,
                                     &name))
        return NULL;
    if (request_is(request) && ((struct request *)request)->inputs)
        return request_input(request, name);
    PyErr_Format(PyExc_TypeError, "inference_request is an InferenceRequest, not %R",
                 (PyObject *)Py_TYPE(request));
    return NULL;
}

/* open(memory, event, life) - take up the link that the server handed over, by descriptors. */
static PyObject *core_open(PyObject *self, PyObject *args)
{
    (void)self;
    int memory, event, life;
    if (!PyArg_ParseTuple(args, "iii", &memory, &event, &life))
        return NULL;
    if (!channel_open(memory, event, life))
        return PyErr_SetFromErrno(PyExc_OSError);
    uint64_t word = (uint64_t)(uintptr_t)&core;
    channel_send(LINK_HELLO, word, &core, sizeof(void *));
    Py_RETURN_NONE;
}

/* adopt(Request, TritonModelException, TritonError) - the classes that Python adds. */
static PyObject *core_adopt(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *request, *exception, *error;
    if (!PyArg_ParseTuple(args, "OOO", &request, &exception, &error))
        return NULL;
    Py_INCREF(request);
    Py_INCREF(exception);
    Py_INCREF(error);
    core.request_made = (PyTypeObject *)request;
    core.exception = exception;
    core.error = error;
    Py_RETURN_NONE;
}

/* decoupled() - whether the model is. */
static PyObject *core_decoupled(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyBool_FromLong(core.decoupled);
}

static PyMethodDef core_functions[] = {
    {"open", core_open, METH_VARARGS, NULL},
    {"adopt", core_adopt, METH_VARARGS, NULL},
    {"decoupled", core_decoupled, METH_NOARGS, NULL},
    {"take", core_take, METH_NOARGS, NULL},
    {"check", core_check, METH_VARARGS, NULL},
    {"answer", core_answer, METH_VARARGS, NULL},
    {"fail", core_fail_requests, METH_VARARGS, NULL},
    {"result", core_result, METH_VARARGS, NULL},
    {"call", core_call, METH_VARARGS, NULL},
    {"tell", core_tell, METH_VARARGS, NULL},
    {"infer", core_infer, METH_VARARGS, NULL},
    {"nested", core_nested, METH_VARARGS, NULL},
    {"forget", core_forget, METH_VARARGS, NULL},
    {"get_input_tensor_by_name", (PyCFunction)(void (*)(void))core_input,
     METH_VARARGS | METH_KEYWORDS, "The input of that name, or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef core_module = {PyModuleDef_HEAD_INIT, .m_name = "nereid_python_stub",
                                         .m_doc = "The stub's side of the python backend.",
                                         .m_size = -1, .m_methods = core_functions};

static bool core_types(PyObject *module)
{
    struct {
        PyTypeObject **place;
        PyType_Spec *spec;
        const char *name;
    } types[] = {{&core.record, &record_spec, "Record"},
                 {&core.tensor, &tensor_spec, "Tensor"},
                 {&core.request, &request_spec, "Request"},
                 {&core.response, &response_spec, "InferenceResponse"},
                 {&core.sender, &sender_spec, "InferenceResponseSender"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        PyObject *type = PyType_FromSpec(types[i].spec);
        if (!type)
            return false;
        *types[i].place = (PyTypeObject *)type;
        Py_INCREF(type);
        if (PyModule_AddObject(module, types[i].name, type) != 0)
            return false;
    }
    return true;
}

PyMODINIT_FUNC PyInit_nereid_python_stub(void)
{
    PyObject *module = PyModule_Create(&core_module);
    core.sent = PyDict_New();
    core.nothing = PyUnicode_InternFromString("");
    core.parameters = PyUnicode_InternFromString("{}");
    core.structure = PyUnicode_InternFromString("__array_struct__");
    bool well = module && core.sent && core.nothing && core.parameters && core.structure &&
                core_types(module);
    for (int kind = 0; well && kind < LINK_KINDS; kind++) {
        static const char *const kinds[LINK_KINDS] = {[LINK_COMPLETE] = "COMPLETE",
                                                      [LINK_INITIALIZE] = "INITIALIZE",
                                                      [LINK_FINALIZE] = "FINALIZE"};
        if (kinds[kind])
            well = PyModule_AddIntConstant(module, kinds[kind], kind) == 0;
    }
#define CALL(name) well = well && PyModule_AddIntConstant(module, #name, CALL_##name) == 0;
    CALLS(CALL)
#undef CALL
    if (!well)
        Py_CLEAR(module);
    return module;
}
