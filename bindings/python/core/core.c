#include "core.h"

struct core core;

bool core_check(TRITONSERVER_Error *e)
{
    if (!e)
        return true;
    core_raise(TRITONSERVER_ErrorCode(e), TRITONSERVER_ErrorMessage(e));
    TRITONSERVER_ErrorDelete(e);
    return false;
}

TRITONSERVER_Error_Code core_code(long code)
{
    bool known = code >= TRITONSERVER_ERROR_UNKNOWN && code <= TRITONSERVER_ERROR_CANCELLED;
    return known ? (TRITONSERVER_Error_Code)code : TRITONSERVER_ERROR_UNKNOWN;
}

void *core_raise(TRITONSERVER_Error_Code code, const char *message)
{
    PyObject *args = Py_BuildValue("(si)", message, (int)core_code((long)code));
    if (args)
        PyErr_SetObject(core.error, args);
    Py_XDECREF(args);
    return NULL;
}

PyObject *core_exception(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

TRITONSERVER_Error *core_error(PyObject *exception, TRITONSERVER_Error_Code code)
{
    PyObject *text = exception ? PyObject_Str(exception) : NULL;
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    TRITONSERVER_Error *e = TRITONSERVER_ErrorNew(code, bytes ? PyBytes_AsString(bytes)
                                                              : "an exception without a text");
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(exception);
    return e;
}

void core_wrap(const char *what, const char *name)
{
    PyObject *value = core_exception();
    PyObject *text = PyUnicode_FromFormat("%s '%s': %S", what, name, value);
    PyObject *args = text ? Py_BuildValue("(Oi)", text, TRITONSERVER_ERROR_INVALID_ARG) : NULL;
    if (args)
        PyErr_SetObject(core.error, args);
    Py_XDECREF(args);
    Py_XDECREF(text);
    Py_XDECREF(value);
}

/* adopt(Error, asarray, plain, texts, bfloat16, function) - what is Python's. */
static PyObject *module_adopt(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject **places[] = {&core.error, &core.asarray,  &core.plain,
                           &core.texts, &core.bfloat16, &core.function};
    enum { PLACES = sizeof places / sizeof places[0] };
    PyObject *given[PLACES];
    if (!PyArg_ParseTuple(args, "OOOOOO", &given[0], &given[1], &given[2], &given[3], &given[4],
                          &given[5]))
        return NULL;
    for (size_t i = 0; i < PLACES; i++) {
        Py_INCREF(given[i]);
        *places[i] = given[i];
    }
    Py_RETURN_NONE;
}

static PyMethodDef module_functions[] = {{"adopt", module_adopt, METH_VARARGS, NULL},
                                         {NULL, NULL, 0, NULL}};

static struct PyModuleDef core_module = {PyModuleDef_HEAD_INIT, .m_name = "nereid._core",
                                         .m_doc = "The server, as the package calls it.",
                                         .m_size = -1, .m_methods = module_functions};

static const struct types_entry module_types[] = {
    {&core.server, &server_spec, "Server"}, {&core.call, &call_spec, "Call"},
    {&core.inbox, &inbox_spec, "Inbox"},    {&core.memory, &memory_spec, "Memory"},
    {&core.lent, &lent_spec, "Lent"},       {&core.held, &held_spec, "Held"},
};

PyMODINIT_FUNC PyInit__core(void); /* called by the interpreter */

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&core_module);
    const size_t types = sizeof module_types / sizeof module_types[0];
    if (module && !(types_add(module, module_types, types) && server_watch_forks()))
        Py_CLEAR(module);
    return module;
}
