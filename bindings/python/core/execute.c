#include "execute.h"

#include "array.h"
#include "gil.h"
#include "timed.h"

#include <string.h>

/* A request that arrays of its inputs keep. */
struct held {
    PyObject_HEAD TRITONBACKEND_Request *request;
};

static void held_free(PyObject *self)
{
    TRITONBACKEND_Request *request = ((struct held *)self)->request;
    if (request)
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    types_free(self);
}

static PyType_Slot held_slots[] = {{Py_tp_dealloc, held_free}, {0, NULL}};
PyType_Spec held_spec = {.name = "nereid._core.Held",
                         .basicsize = (int)sizeof(struct held),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = held_slots};

/* Inputs up to this size are copied: who keeps one keeps no request, and so does not hinder the end
 * of the server. */
enum { COPIED_BYTES = 16 << 10 };

/* The memory of an input: where it lies, kept by its request; copied where it is small or has
 * pieces. */
static PyObject *execute_memory(PyObject *held, TRITONBACKEND_Input *input, uint32_t pieces,
                                uint64_t bytes, const void **ret_data)
{
    PyObject *whole = NULL;
    char *to = NULL;
    *ret_data = NULL;
    if (pieces > 1 || bytes <= COPIED_BYTES) {
        whole = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
        to = whole ? PyBytes_AsString(whole) : NULL;
        if (!to)
            return NULL;
        *ret_data = to;
    }
    for (uint32_t i = 0; i < pieces; i++) {
        const void *piece;
        uint64_t size;
        TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
        int64_t type_id = 0;
        TRITONSERVER_Error *e = TRITONBACKEND_InputBuffer(input, i, &piece, &size, &type, &type_id);
        if (!core_check(e)) {
            Py_XDECREF(whole);
            return NULL;
        }
        if (!to) {
            *ret_data = piece;
            break;
        }
        if (size > bytes)
            size = bytes;
        memcpy(to, piece, size);
        to += size;
        bytes -= size;
    }
    if (!whole) {
        Py_INCREF(held);
        whole = held;
    }
    return whole;
}

static bool execute_input(PyObject *held, TRITONBACKEND_Request *request, uint32_t index,
                          PyObject *inputs)
{
    TRITONBACKEND_Input *input;
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint32_t rank, pieces;
    uint64_t bytes;
    TRITONSERVER_Error *e = TRITONBACKEND_RequestInputByIndex(request, index, &input);
    if (!e)
        e = TRITONBACKEND_InputProperties(input, &name, &datatype, &shape, &rank, &bytes, &pieces);
    if (!core_check(e))
        return false;
    const void *data;
    PyObject *owner = execute_memory(held, input, pieces, bytes, &data);
    PyObject *array =
        owner ? array_view(owner, datatype, shape, rank, (void *)(uintptr_t)data, bytes, false)
              : NULL;
    bool well = array && PyDict_SetItemString(inputs, name, array) == 0;
    Py_XDECREF(array);
    Py_XDECREF(owner);
    return well;
}

/* The inputs of a request as a dict of arrays; NULL with an exception. */
static PyObject *execute_inputs(PyObject *held, TRITONBACKEND_Request *request)
{
    uint32_t count;
    PyObject *inputs = PyDict_New();
    if (!inputs || !core_check(TRITONBACKEND_RequestInputCount(request, &count))) {
        Py_XDECREF(inputs);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!execute_input(held, request, i, inputs)) {
            Py_DECREF(inputs);
            return NULL;
        }
    }
    return inputs;
}

/* Takes the exception that is set, as an error: with the code of a nereid.Error, and no other. */
static TRITONSERVER_Error *execute_error(void)
{
    PyObject *exception = core_exception();
    bool ours = exception && PyObject_IsInstance(exception, core.error) == 1;
    PyObject *number = ours ? PyObject_GetAttrString(exception, "code") : NULL;
    long code =
        number && PyLong_Check(number) ? PyLong_AsLong(number) : TRITONSERVER_ERROR_INTERNAL;
    PyErr_Clear();
    Py_XDECREF(number);
    return core_error(exception, core_code(code));
}

/* Copies an array to an output of a response. */
static TRITONSERVER_Error *execute_output(TRITONBACKEND_Response *response, const char *name,
                                          const struct array *a)
{
    TRITONBACKEND_Output *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t type_id = 0;
    void *buffer = NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_ResponseOutput(response, &output, name, a->datatype,
                                                         a->shape, (uint32_t)a->rank);
    if (!e)
        e = TRITONBACKEND_OutputBuffer(output, &buffer, a->bytes, &type, &type_id);
    if (!e && type == TRITONSERVER_MEMORY_GPU)
        e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                  "the output is in a GPU's memory");
    if (!e && a->bytes)
        memcpy(buffer, a->data, a->bytes);
    return e;
}

/* Writes the outputs that a request asks for. */
static TRITONSERVER_Error *execute_outputs(TRITONBACKEND_Request *request,
                                           TRITONBACKEND_Response *response, PyObject *outputs)
{
    uint32_t count = 0;
    TRITONSERVER_Error *e = TRITONBACKEND_RequestOutputCount(request, &count);
    for (uint32_t i = 0; !e && i < count; i++) {
        const char *name;
        e = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (e)
            break;
        PyObject *key = PyUnicode_FromString(name);
        PyObject *value = key ? PyDict_GetItemWithError(outputs, key) : NULL;
        struct array a = {0};
        if (value && array_read(value, &a))
            e = execute_output(response, name, &a);
        else if (PyErr_Occurred())
            e = execute_error();
        Py_XDECREF(a.owner);
        Py_XDECREF(key);
    }
    return e;
}

/* A result as a response: a dict of arrays, or (code, message).
 * returns  the error, which the response carries */
static TRITONSERVER_Error *execute_result(TRITONBACKEND_Request *request,
                                          TRITONBACKEND_Response *response, PyObject *result)
{
    if (PyDict_Check(result))
        return execute_outputs(request, response, result);
    int code;
    const char *message;
    if (PyTuple_Check(result) && PyArg_ParseTuple(result, "is", &code, &message))
        return TRITONSERVER_ErrorNew((TRITONSERVER_Error_Code)code, message);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "the function gave %R", (PyObject *)Py_TYPE(result));
    return execute_error();
}

/* Who asked is gone, or does not want more. */
static bool execute_is_cancelled(TRITONBACKEND_Request *request)
{
    bool cancelled = false;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_RequestIsCancelled(request, &cancelled));
    return cancelled;
}

/* Answers a request with an error, which is freed. */
static void execute_answer_error(TRITONBACKEND_Request *request, TRITONSERVER_Error *e)
{
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseNew(&response, request));
    if (response)
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e));
    TRITONSERVER_ErrorDelete(e);
}

/* Sends one response for each item of an iterator until nobody wants more, then the end.
 * returns  false after an error, which was sent */
static bool execute_stream(TRITONBACKEND_Request *request, PyObject *items)
{
    TRITONBACKEND_ResponseFactory *factory;
    TRITONSERVER_Error *e = TRITONBACKEND_ResponseFactoryNew(&factory, request);
    if (e) {
        execute_answer_error(request, e);
        return false;
    }
    bool over = false; /* the last response was sent */
    while (!e) {
        TRITONBACKEND_Response *response = NULL;
        PyObject *item = execute_is_cancelled(request) ? NULL : PyIter_Next(items);
        if (!item && !PyErr_Occurred())
            break;
        TRITONSERVER_Error *lost = TRITONBACKEND_ResponseNewFromFactory(&response, factory);
        e = item ? NULL : execute_error();
        if (!e && !lost)
            e = execute_result(request, response, item);
        over = e && response;
        if (response)
            TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(
                response, over ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, e));
        if (!e)
            e = lost;
        else
            TRITONSERVER_ErrorDelete(lost);
        Py_XDECREF(item);
    }
    if (!over)
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    bool well = !e;
    TRITONSERVER_ErrorDelete(e);
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseFactoryDelete(factory));
    return well;
}

/* When an execution began, and what it took. */
struct execute_times {
    uint64_t start, computes, computed;
};

/* Answers one request. Counts before it sends, so that who has the answer finds it in the
 * statistics. */
static void execute_answer(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
                           PyObject *result, TRITONSERVER_Error *failed,
                           const struct execute_times *times)
{
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *e = NULL;
    bool stream = result && PyIter_Check(result);
    bool well = !failed;
    if (stream) {
        well = execute_stream(request, result);
    } else {
        e = TRITONBACKEND_ResponseNew(&response, request);
        if (!e && !failed)
            e = execute_result(request, response, result);
        well = well && !e;
    }
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportStatistics(
        instance, request, well, times->start, times->computes, times->computed, timed_now()));
    if (response)
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSend(
            response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, failed ? failed : e));
    TRITONSERVER_ErrorDelete(e);
}

/* The inputs of all requests, as the function gets them; NULL with an exception.
 * held  a list of as many objects, which keep the requests */
static PyObject *execute_asked(PyObject *held, TRITONBACKEND_Request **requests, uint32_t count)
{
    PyObject *asked = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; asked && i < count; i++) {
        PyObject *inputs = execute_inputs(PyList_GetItem(held, (Py_ssize_t)i), requests[i]);
        if (!inputs || PyList_SetItem(asked, (Py_ssize_t)i, inputs) != 0)
            Py_CLEAR(asked);
    }
    return asked;
}

/* Objects that release the requests when nobody needs them any more; NULL without memory, when
 * nothing is held. */
static PyObject *execute_hold(TRITONBACKEND_Request **requests, uint32_t count)
{
    PyObject *held = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; held && i < count; i++) {
        PyObject *one = PyType_GenericAlloc(core.held, 0);
        if (!one || PyList_SetItem(held, (Py_ssize_t)i, one) != 0)
            Py_CLEAR(held);
    }
    for (uint32_t i = 0; held && i < count; i++)
        ((struct held *)PyList_GetItem(held, (Py_ssize_t)i))->request = requests[i];
    return held;
}

/* Calls the function.
 * returns  a list of as many results; NULL with an exception */
static PyObject *execute_call(PyObject *function, PyObject *asked, uint32_t count)
{
    PyObject *results = PyObject_CallFunctionObjArgs(function, asked, NULL);
    if (results && (!PyList_Check(results) || PyList_Size(results) != (Py_ssize_t)count)) {
        Py_CLEAR(results);
        PyErr_SetString(PyExc_TypeError, "the function gave no list of as many results");
    }
    return results;
}

void execute_refuse(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
                    TRITONSERVER_Error *e)
{
    struct execute_times times = {0};
    times.start = times.computes = times.computed = timed_now();
    execute_answer(instance, request, NULL, e, &times);
}

/* Rows of the batch that a request is. */
static uint64_t execute_rows_of(const struct function *f, TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t rank;
    TRITONSERVER_Error *e =
        f->batches ? TRITONBACKEND_RequestInputByIndex(request, 0, &input) : NULL;
    if (f->batches && !e)
        e = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &rank, NULL, NULL);
    bool batch = f->batches && !e && rank > 0;
    TRITONSERVER_ErrorDelete(e);
    return batch ? (uint64_t)shape[0] : 1;
}

static void execute_answers(const struct execution *x, PyObject *results,
                            TRITONSERVER_Error *failed, const struct execute_times *times)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < x->count; i++)
        rows += execute_rows_of(x->function, x->requests[i]);
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportBatchStatistics(
        x->instance, rows, times->start, times->computes, times->computed, timed_now()));
    for (uint32_t i = 0; i < x->count; i++)
        execute_answer(x->instance, x->requests[i],
                       results ? PyList_GetItem(results, (Py_ssize_t)i) : NULL, failed, times);
}

void execute_batch(const struct execution *x)
{
    struct execute_times times = {.start = timed_now()};
    PyGILState_STATE state = gil_take();
    PyObject *held = execute_hold(x->requests, x->count);
    PyObject *asked = held ? execute_asked(held, x->requests, x->count) : NULL;
    times.computes = timed_now();
    PyObject *results = asked ? execute_call(x->function->run, asked, x->count) : NULL;
    TRITONSERVER_Error *failed = results ? NULL : execute_error();
    Py_XDECREF(asked);
    times.computed = timed_now();
    if (!x->may_answer || x->may_answer(x->arg))
        execute_answers(x, results, failed, &times);
    TRITONSERVER_ErrorDelete(failed);
    if (x->before_release) {
        Py_BEGIN_ALLOW_THREADS;
        x->before_release(x->arg);
        Py_END_ALLOW_THREADS;
    }
    Py_XDECREF(results);
    for (uint32_t i = 0; !held && i < x->count; i++)
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestRelease(x->requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
    Py_XDECREF(held);
    gil_give(state);
}
