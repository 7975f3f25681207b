#include "core.h"

#include "call.h"
#include "fault.h"
#include "nereid_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A server that runs. Each call that needs it holds it: a call may let other threads run, and they
 * may stop it. All under the GIL. */
struct running {
    struct hosted *hosted;
    unsigned holders; /* the object of Python until it is closed, and calls */
    unsigned forks;   /* of this process, when it was started */
};

struct server_object {
    PyObject_HEAD struct running *running; /* NULL = closed */
};

static unsigned forks; /* how many forks lie between the first process and this one */

static void server_forked(void)
{
    forks++;
}

bool server_watch_forks(void)
{
    return pthread_atfork(NULL, NULL, server_forked) == 0;
}

/* The server, held; NULL with an exception when it is closed, or of the process that this one was
 * forked from: none of its threads is here. */
static struct running *server_hold(PyObject *self)
{
    struct running *r = ((struct server_object *)self)->running;
    if (!r)
        return core_raise(TRITONSERVER_ERROR_UNAVAILABLE, "the server is stopped");
    if (r->forks != forks)
        return core_raise(TRITONSERVER_ERROR_UNAVAILABLE,
                          "the server runs in the process that this one was forked from: start one "
                          "of its own here, after the fork");
    r->holders++;
    return r;
}

static TRITONSERVER_Server *server_held(const struct running *r)
{
    return (TRITONSERVER_Server *)nereid_private_v1.host_server(r->hosted);
}

static void server_let_go(struct running *r)
{
    if (--r->holders)
        return;
    Py_BEGIN_ALLOW_THREADS;
    nereid_private_v1.host_free(r->hosted);
    Py_END_ALLOW_THREADS;
    free(r);
}

/* A list of str as C texts, which lie in *ret_kept. */
static char **server_texts(PyObject *list, Py_ssize_t count, PyObject **ret_kept)
{
    char **argv = calloc((size_t)count + 1, sizeof *argv);
    PyObject *kept = PyList_New(count);
    bool well = argv && kept;
    for (Py_ssize_t i = 0; well && i < count; i++) {
        PyObject *bytes = PyUnicode_EncodeFSDefault(PyList_GetItem(list, i));
        well = bytes && PyList_SetItem(kept, i, bytes) == 0;
        if (well)
            well = PyBytes_AsStringAndSize(bytes, &argv[i], NULL) == 0;
    }
    *ret_kept = kept;
    if (well)
        return argv;
    if (!argv)
        PyErr_NoMemory();
    Py_CLEAR(*ret_kept);
    free(argv);
    return NULL;
}

/* Server(argv, repository, names, python) - start a server with this command line; a repository
 * with models of these names and a Python for models are added. */
static PyObject *server_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *list, *kept, *names, *kept_names = NULL;
    struct hosted_more more;
    if (!PyArg_ParseTuple(args, "O!zO!z", &PyList_Type, &list, &more.repository, &PyList_Type,
                          &names, &more.python))
        return NULL;
    Py_ssize_t count = PyList_Size(list);
    struct server_object *made = (struct server_object *)PyType_GenericAlloc(type, 0);
    struct running *r = calloc(1, sizeof *r);
    char **argv = made && r ? server_texts(list, count, &kept) : NULL;
    char **models = argv ? server_texts(names, PyList_Size(names), &kept_names) : NULL;
    if (!models) {
        if (argv)
            Py_DECREF(kept);
        free(argv);
        Py_XDECREF(made);
        free(r);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *r = (struct running){.holders = 1, .forks = forks};
    more.names = (const char *const *)models;
    TRITONSERVER_Error *e;
    fault_watch();
    Py_BEGIN_ALLOW_THREADS;
    e = (TRITONSERVER_Error *)nereid_private_v1.host_open((int)count, argv, &more, &r->hosted);
    Py_END_ALLOW_THREADS;
    free(models);
    free(argv);
    Py_DECREF(kept_names);
    Py_DECREF(kept);
    if (core_check(e)) {
        made->running = r;
        return (PyObject *)made;
    }
    free(r);
    Py_DECREF(made);
    return NULL;
}

/* close() - stop it; requests under way are answered first. Without effect in a process that was
 * forked from that of the server. */
static PyObject *server_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct running *r = ((struct server_object *)self)->running;
    ((struct server_object *)self)->running = NULL;
    if (!r || r->forks != forks)
        Py_RETURN_NONE;
    TRITONSERVER_Error *e;
    Py_BEGIN_ALLOW_THREADS;
    e = (TRITONSERVER_Error *)nereid_private_v1.host_stop(r->hosted);
    Py_END_ALLOW_THREADS;
    if (!e)
        server_let_go(r);
    call_bury();
    if (!core_check(e))
        return NULL;
    Py_RETURN_NONE;
}

/* ports() - those of HTTP, gRPC and metrics; 0 = not served. */
static PyObject *server_ports(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct running *r = server_hold(self);
    if (!r)
        return NULL;
    uint16_t ports[3];
    nereid_private_v1.host_ports(r->hosted, ports);
    server_let_go(r);
    return Py_BuildValue("(HHH)", ports[0], ports[1], ports[2]);
}

/* submit(model, version, inputs, outputs, settings, inbox, number) - see call_start. */
static PyObject *server_submit(PyObject *self, PyObject *args)
{
    struct running *r = server_hold(self);
    PyObject *call = r ? call_start(server_held(r), args) : NULL;
    if (r)
        server_let_go(r);
    return call;
}

/* infer(seconds, ...) - submit() with the rest, and wait for the response; UNSUPPORTED where it is
 * not the only one. */
static PyObject *server_infer(PyObject *self, PyObject *args)
{
    Py_ssize_t count = PyTuple_Size(args);
    PyObject *rest = count > 0 ? PyTuple_GetSlice(args, 1, count) : NULL;
    double seconds = rest ? PyFloat_AsDouble(PyTuple_GetItem(args, 0)) : 0;
    PyObject *call = rest && !PyErr_Occurred() ? server_submit(self, rest) : NULL;
    PyObject *outputs = call ? call_wait(call, seconds) : NULL;
    if (outputs && outputs != Py_None && !call_is_over(call)) {
        Py_CLEAR(outputs);
        core_raise(TRITONSERVER_ERROR_UNSUPPORTED,
                   "the request has more than one response: iterate over stream()");
    }
    Py_XDECREF(call);
    Py_XDECREF(rest);
    return outputs;
}

static PyObject *server_message(TRITONSERVER_Error *e, TRITONSERVER_Message *message)
{
    const char *base;
    size_t bytes;
    if (!e)
        e = TRITONSERVER_MessageSerializeToJson(message, &base, &bytes);
    PyObject *text = e ? NULL : PyUnicode_DecodeUTF8(base, (Py_ssize_t)bytes, "replace");
    if (message)
        TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    core_check(e);
    return text;
}

static PyObject *server_page(TRITONSERVER_Server *server)
{
    TRITONSERVER_Metrics *metrics = NULL;
    const char *base;
    size_t bytes;
    TRITONSERVER_Error *e = TRITONSERVER_ServerMetrics(server, &metrics);
    if (!e)
        e = TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &base, &bytes);
    PyObject *text = e ? NULL : PyUnicode_DecodeUTF8(base, (Py_ssize_t)bytes, "replace");
    if (metrics)
        TRITONSERVER_ErrorDelete(TRITONSERVER_MetricsDelete(metrics));
    core_check(e);
    return text;
}

static PyObject *server_told(TRITONSERVER_Server *server, const char *what, const char *model,
                             long long version)
{
    TRITONSERVER_Error *e;
    TRITONSERVER_Message *message = NULL;
    if (strcmp(what, "metrics") == 0)
        return server_page(server);
    if (strcmp(what, "metadata") == 0)
        e = TRITONSERVER_ServerModelMetadata(server, model, version, &message);
    else if (strcmp(what, "config") == 0)
        e = TRITONSERVER_ServerModelConfig(server, model, version, 1, &message);
    else if (strcmp(what, "statistics") == 0)
        e = TRITONSERVER_ServerModelStatistics(server, model, version, &message);
    else if (strcmp(what, "index") == 0)
        e = TRITONSERVER_ServerModelIndex(server, 0, &message);
    else
        e = TRITONSERVER_ServerMetadata(server, &message);
    return server_message(e, message);
}

/* ask(what, model, version) - what the server tells, as text. */
static PyObject *server_ask(PyObject *self, PyObject *args)
{
    const char *what, *model;
    long long version;
    struct running *r =
        PyArg_ParseTuple(args, "ssL", &what, &model, &version) ? server_hold(self) : NULL;
    if (!r)
        return NULL;
    PyObject *text = server_told(server_held(r), what, model, version);
    server_let_go(r);
    return text;
}

/* ready(model, version) - "" = the server. */
static PyObject *server_ready(PyObject *self, PyObject *args)
{
    const char *model;
    long long version;
    bool ready = false;
    struct running *r = PyArg_ParseTuple(args, "sL", &model, &version) ? server_hold(self) : NULL;
    if (!r)
        return NULL;
    TRITONSERVER_Server *server = server_held(r);
    TRITONSERVER_Error *e = *model ? TRITONSERVER_ServerModelIsReady(server, model, version, &ready)
                                   : TRITONSERVER_ServerIsReady(server, &ready);
    server_let_go(r);
    return core_check(e) ? PyBool_FromLong(ready) : NULL;
}

/* decoupled(model, version) - whether a request may have any number of responses. */
static PyObject *server_decoupled(PyObject *self, PyObject *args)
{
    const char *model;
    long long version;
    uint32_t flags = 0;
    struct running *r = PyArg_ParseTuple(args, "sL", &model, &version) ? server_hold(self) : NULL;
    if (!r)
        return NULL;
    TRITONSERVER_Error *e =
        TRITONSERVER_ServerModelTransactionProperties(server_held(r), model, version, &flags, NULL);
    server_let_go(r);
    return core_check(e) ? PyBool_FromLong(flags & TRITONSERVER_TXN_DECOUPLED) : NULL;
}

/* load(model, load) - load or unload a model, and wait for it. */
static PyObject *server_load(PyObject *self, PyObject *args)
{
    const char *model;
    int load;
    struct running *r = PyArg_ParseTuple(args, "sp", &model, &load) ? server_hold(self) : NULL;
    if (!r)
        return NULL;
    TRITONSERVER_Error *e;
    Py_BEGIN_ALLOW_THREADS;
    e = load ? TRITONSERVER_ServerLoadModel(server_held(r), model)
             : TRITONSERVER_ServerUnloadModel(server_held(r), model);
    Py_END_ALLOW_THREADS;
    server_let_go(r);
    if (!core_check(e))
        return NULL;
    Py_RETURN_NONE;
}

static void server_object_free(PyObject *self)
{
    if (((struct server_object *)self)->running) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        Py_XDECREF(server_close(self, NULL));
        PyErr_Restore(type, value, trace);
    }
    types_free(self);
}

static PyMethodDef server_methods[] = {{"close", server_close, METH_NOARGS, NULL},
                                       {"ports", server_ports, METH_NOARGS, NULL},
                                       {"submit", server_submit, METH_VARARGS, NULL},
                                       {"infer", server_infer, METH_VARARGS, NULL},
                                       {"ask", server_ask, METH_VARARGS, NULL},
                                       {"ready", server_ready, METH_VARARGS, NULL},
                                       {"decoupled", server_decoupled, METH_VARARGS, NULL},
                                       {"load", server_load, METH_VARARGS, NULL},
                                       {NULL, NULL, 0, NULL}};
static PyType_Slot server_slots[] = {{Py_tp_new, server_new},
                                     {Py_tp_dealloc, server_object_free},
                                     {Py_tp_methods, server_methods},
                                     {0, NULL}};
PyType_Spec server_spec = {.name = "nereid._core.Server",
                           .basicsize = (int)sizeof(struct server_object),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = server_slots};
