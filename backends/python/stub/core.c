#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../calls.h"
#include "ask.h"
#include "task.h"

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

bool core_whole(PyObject *text)
{
    Py_ssize_t found = PyUnicode_FindChar(text, 0, 0, PyUnicode_GetLength(text), 1);
    if (found >= 0)
        PyErr_Format(PyExc_ValueError, "%R holds a zero byte", text);
    return found == -1;
}

bool core_name(struct wire_out *out, PyObject *name)
{
    return core_whole(name) && core_text(out, name);
}

bool core_said(struct wire_out *out, PyObject *text)
{
    /* Whoever reads it takes a zero byte for its end. */
    PyObject *said = PyUnicode_Substring(text, 0, WIRE_MAX_SAID);
    PyObject *zero = PyUnicode_FromStringAndSize("", 1);
    PyObject *escaped = PyUnicode_FromString("\\x00");
    PyObject *whole = said && zero && escaped ? PyUnicode_Replace(said, zero, escaped, -1) : NULL;
    bool well = whole && core_text(out, whole);
    Py_XDECREF(said);
    Py_XDECREF(zero);
    Py_XDECREF(escaped);
    Py_XDECREF(whole);
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

PyObject *core_str_within(struct wire_in *in, PyObject *record)
{
    (void)record;
    return core_str(in);
}

PyObject *core_list(struct wire_in *in, core_read_fn *read, PyObject *record)
{
    uint32_t count = wire_count(in);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *each = read(in, record);
        if (!each)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, each);
    }
    return list;
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

PyObject *record_of_place(uint64_t place)
{
    struct channel_record *record = calloc(1, sizeof *record);
    if (!record) {
        channel_give_back(place);
        return PyErr_NoMemory();
    }
    record->place = place;
    return record_wrap(record);
}

static void record_free(PyObject *self)
{
    channel_free(((struct record_object *)self)->record);
    types_free(self);
}

static PyType_Slot record_slots[] = {{Py_tp_dealloc, (void *)record_free}, {0, NULL}};
PyType_Spec record_spec = {.name = "c_python_backend_utils.Record",
                           .basicsize = sizeof(struct record_object),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = record_slots};

struct channel_record *core_wait(uint64_t id)
{
    struct channel_record *record;
    Py_BEGIN_ALLOW_THREADS record = channel_wait(id);
    Py_END_ALLOW_THREADS return record;
}

/* -- what Python calls -- */

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

/* open(memory, life, bell) - take up the link that the server handed over, by descriptors. */
static PyObject *core_open(PyObject *self, PyObject *args)
{
    (void)self;
    int memory, life, bell;
    if (!PyArg_ParseTuple(args, "iii", &memory, &life, &bell))
        return NULL;
    if (!channel_open(memory, life, bell))
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
    {"take", task_take, METH_NOARGS, NULL},
    {"check", task_check, METH_VARARGS, NULL},
    {"answer", task_answer, METH_VARARGS, NULL},
    {"fail", task_fail, METH_VARARGS, NULL},
    {"result", task_result, METH_VARARGS, NULL},
    {"call", ask_call, METH_VARARGS, NULL},
    {"tell", ask_tell, METH_VARARGS, NULL},
    {"infer", ask_infer, METH_VARARGS, NULL},
    {"nested", ask_nested, METH_VARARGS, NULL},
    {"forget", ask_forget, METH_VARARGS, NULL},
    {"get_input_tensor_by_name", (PyCFunction)(void (*)(void))core_input,
     METH_VARARGS | METH_KEYWORDS, "The input of that name, or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef core_module = {PyModuleDef_HEAD_INIT, .m_name = "nereid_python_stub",
                                         .m_doc = "The stub's side of the python backend.",
                                         .m_size = -1, .m_methods = core_functions};

static const struct types_entry core_types[] = {
    {&core.record, &record_spec, "Record"},
    {&core.tensor, &tensor_spec, "Tensor"},
    {&core.request, &request_spec, "Request"},
    {&core.response, &response_spec, "InferenceResponse"},
    {&core.sender, &sender_spec, "InferenceResponseSender"},
};

PyMODINIT_FUNC PyInit_nereid_python_stub(void)
{
    PyObject *module = PyModule_Create(&core_module);
    core.sent = PyDict_New();
    core.nothing = PyUnicode_InternFromString("");
    core.parameters = PyUnicode_InternFromString("{}");
    bool well = module && core.sent && core.nothing && core.parameters &&
                types_add(module, core_types, sizeof core_types / sizeof core_types[0]);
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
