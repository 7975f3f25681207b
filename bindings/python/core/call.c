#include "call.h"

#include "answer.h"
#include "block.h"
#include "fill.h"
#include "inbox.h"
#include "timed.h"

#include <stdlib.h>

/* More responses of a request than this, or more of their bytes, are not kept while nobody takes
 * them: the request is cancelled. One response may have any size. */
#define MOST_WAITING       65536u
#define MOST_WAITING_BYTES ((size_t)256 << 20)

/* How often who waits looks whether a signal has come. */
#define LOOK_NS 100000000

/* Freed by whoever comes last: the object of Python, the final response, the release of the
 * request. Without the GIL it cannot be freed, since it keeps arrays: then it is buried later. */
struct call {
    TRITONSERVER_InferenceRequest *request;
    PyObject *kept; /* a list of what the inputs lie in */
    struct inbox *inbox;
    uint64_t number;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct answer *first, **last;
    unsigned waiting;
    size_t waiting_bytes;
    bool final, released, left; /* left: by its object */
    bool lost;                  /* a response came and there was no room for it */
    struct call *next;          /* of those to bury */
};

struct call_object {
    PyObject_HEAD struct call *call;
};

static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `dead` */
static struct call *dead;

static struct call *call_of(PyObject *object)
{
    return ((struct call_object *)object)->call;
}

/* With the GIL. */
static void call_free(struct call *c)
{
    if (c->request)
        TRITONSERVER_ErrorDelete(TRITONSERVER_InferenceRequestDelete(c->request));
    while (c->first) {
        struct answer *a = c->first;
        c->first = a->next;
        answer_free(a);
    }
    Py_XDECREF(c->kept);
    inbox_unref(c->inbox);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void call_bury(void)
{
    pthread_mutex_lock(&dead_lock);
    struct call *c = dead;
    dead = NULL;
    pthread_mutex_unlock(&dead_lock);
    while (c) {
        struct call *next = c->next;
        call_free(c);
        c = next;
    }
}

/* Nobody comes to the call any more: it is freed when Python's lock is held. */
static void call_die(struct call *c)
{
    pthread_mutex_lock(&dead_lock);
    c->next = dead;
    dead = c;
    pthread_mutex_unlock(&dead_lock);
}

/* Tells who waits, and lets go of the call. Caller holds the lock; returns without it. */
static void call_told(struct call *c)
{
    bool over = c->left && c->final && c->released;
    pthread_cond_signal(&c->changed);
    if (c->inbox && !c->left)
        inbox_post(c->inbox, c->number);
    pthread_mutex_unlock(&c->lock);
    if (over)
        call_die(c);
}

/* Caller holds the lock. */
static bool call_has_room(const struct call *c, const struct answer *a)
{
    bool fits =
        c->waiting_bytes < MOST_WAITING_BYTES && a->bytes <= MOST_WAITING_BYTES - c->waiting_bytes;
    return !c->waiting || (c->waiting < MOST_WAITING && fits);
}

/* A response has come, on a thread of the server's. */
static void call_responded(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                           void *userp)
{
    struct call *c = userp;
    struct answer *a = response ? answer_of(response) : NULL;
    pthread_mutex_lock(&c->lock);
    bool lost = response && (!a || !call_has_room(c, a));
    if (a && !lost && !c->lost && !c->left) {
        *c->last = a;
        c->last = &a->next;
        c->waiting++;
        c->waiting_bytes += a->bytes;
        a = NULL;
    }
    bool cancel = lost && !c->lost && !(flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    c->lost |= lost;
    if (cancel) {
        pthread_mutex_unlock(&c->lock);
        TRITONSERVER_ErrorDelete(TRITONSERVER_InferenceRequestCancel(c->request));
        pthread_mutex_lock(&c->lock);
    }
    c->final |= (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    call_told(c);
    answer_free(a);
}

static void call_released(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp)
{
    (void)request, (void)flags;
    struct call *c = userp;
    pthread_mutex_lock(&c->lock);
    c->released = true;
    bool over = c->left && c->final;
    pthread_mutex_unlock(&c->lock);
    if (over)
        call_die(c);
}

static struct call *call_new(void)
{
    struct call *c = calloc(1, sizeof *c);
    if (!c) {
        PyErr_NoMemory();
        return NULL;
    }
    timed_init(&c->changed);
    pthread_mutex_init(&c->lock, NULL);
    c->last = &c->first;
    c->kept = PyList_New(0);
    if (!c->kept) {
        call_free(c);
        return NULL;
    }
    return c;
}

static bool call_send(struct call *c, TRITONSERVER_Server *server)
{
    TRITONSERVER_ResponseAllocator *allocator;
    TRITONSERVER_Error *e = block_allocator(&allocator);
    if (!e)
        e = TRITONSERVER_InferenceRequestSetReleaseCallback(c->request, call_released, c);
    if (!e)
        e = TRITONSERVER_InferenceRequestSetResponseCallback(c->request, allocator, NULL,
                                                             call_responded, c);
    if (!e)
        e = TRITONSERVER_ServerInferAsync(server, c->request, NULL);
    return core_check(e);
}

PyObject *call_start(TRITONSERVER_Server *server, PyObject *args)
{
    call_bury();
    const char *model;
    long long version;
    PyObject *inputs, *outputs, *settings, *inbox;
    unsigned long long number;
    if (!PyArg_ParseTuple(args, "sLO!OOOK", &model, &version, &PyDict_Type, &inputs, &outputs,
                          &settings, &inbox, &number))
        return NULL;
    struct call *c = call_new();
    if (!c)
        return NULL;
    if (inbox != Py_None)
        c->inbox = inbox_ref(inbox_object_of(inbox));
    c->number = number;
    PyObject *object = PyType_GenericAlloc(core.call, 0);
    bool well = object &&
                core_check(TRITONSERVER_InferenceRequestNew(&c->request, server, model, version)) &&
                fill_inputs(c->request, inputs, c->kept) && fill_outputs(c->request, outputs) &&
                fill_settings(c->request, settings) && call_send(c, server);
    if (!well) {
        Py_XDECREF(object);
        call_free(c);
        return NULL;
    }
    ((struct call_object *)object)->call = c;
    return object;
}

static void call_object_free(PyObject *self)
{
    struct call *c = call_of(self);
    if (c) {
        pthread_mutex_lock(&c->lock);
        bool final = c->final;
        pthread_mutex_unlock(&c->lock);
        if (!final) /* nobody waits for it any more; `left` is not set yet, so that it stays */
            TRITONSERVER_ErrorDelete(TRITONSERVER_InferenceRequestCancel(c->request));
        pthread_mutex_lock(&c->lock);
        bool over = c->final && c->released;
        c->left = true;
        pthread_mutex_unlock(&c->lock);
        if (over)
            call_free(c);
    }
    types_free(self);
}

/* Waits a while for a response. Without the GIL. */
static void call_wait_some(struct call *c, uint64_t ns)
{
    struct timespec until = timed_after(ns);
    pthread_mutex_lock(&c->lock);
    while (!c->first && !c->final && pthread_cond_timedwait(&c->changed, &c->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&c->lock);
}

/* The next response, if it has come. *ret_end: there is none to come. */
static struct answer *call_pop(struct call *c, bool *ret_end, bool *ret_lost)
{
    pthread_mutex_lock(&c->lock);
    struct answer *a = c->first;
    if (a) {
        c->first = a->next;
        c->waiting--;
        c->waiting_bytes -= a->bytes;
        if (!c->first)
            c->last = &c->first;
    }
    *ret_end = !a && c->final;
    *ret_lost = !a && c->lost;
    pthread_mutex_unlock(&c->lock);
    return a;
}

static PyObject *call_given(struct answer *a)
{
    PyObject *outputs = answer_outputs(a);
    answer_free(a);
    return outputs;
}

PyObject *call_wait(PyObject *call, double seconds)
{
    struct call *c = call_of(call);
    uint64_t until = timed_until(seconds);
    for (;;) {
        bool end, lost;
        struct answer *a = call_pop(c, &end, &lost);
        if (a)
            return call_given(a);
        if (end && lost)
            return core_raise(TRITONSERVER_ERROR_UNAVAILABLE,
                              "responses were lost: there was no room for more that nobody took");
        if (end)
            Py_RETURN_NONE;
        uint64_t now = timed_now();
        if (now >= until) {
            PyErr_SetString(PyExc_TimeoutError, "no response has come in time");
            return NULL;
        }
        uint64_t ns = until - now < LOOK_NS ? until - now : LOOK_NS;
        Py_BEGIN_ALLOW_THREADS;
        call_wait_some(c, ns);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals() != 0)
            return NULL;
    }
}

bool call_is_over(PyObject *call)
{
    struct call *c = call_of(call);
    pthread_mutex_lock(&c->lock);
    bool over = c->final && !c->first;
    pthread_mutex_unlock(&c->lock);
    return over;
}

/* wait(seconds) - see call_wait. */
static PyObject *call_object_wait(PyObject *self, PyObject *args)
{
    double seconds;
    return PyArg_ParseTuple(args, "d", &seconds) ? call_wait(self, seconds) : NULL;
}

/* take() - the responses that have come: a list of dicts and exceptions, and whether those were
 * all. */
static PyObject *call_object_take(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    bool end = false, lost = false;
    struct answer *a;
    while (list && (a = call_pop(call_of(self), &end, &lost)) != NULL) {
        PyObject *item = call_given(a);
        if (!item)
            item = core_exception();
        if (!item || PyList_Append(list, item) != 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    PyObject *pair =
        list ? Py_BuildValue("(OOO)", list, end ? Py_True : Py_False, lost ? Py_True : Py_False)
             : NULL;
    Py_XDECREF(list);
    return pair;
}

static PyObject *call_object_cancel(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!core_check(TRITONSERVER_InferenceRequestCancel(call_of(self)->request)))
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef call_methods[] = {{"wait", call_object_wait, METH_VARARGS, NULL},
                                     {"take", call_object_take, METH_NOARGS, NULL},
                                     {"cancel", call_object_cancel, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyType_Slot call_slots[] = {
    {Py_tp_dealloc, call_object_free}, {Py_tp_methods, call_methods}, {0, NULL}};
PyType_Spec call_spec = {.name = "nereid._core.Call",
                         .basicsize = (int)sizeof(struct call_object),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = call_slots};
