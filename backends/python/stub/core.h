#pragma once

/* The stub's extension module, in the interface that every CPython from 3.9 has. */
#include "common/cpython/types.h"

#include "../link.h"
#include "../wire.h"
#include "channel.h"

/* What the module keeps, made by core.c. One interpreter, one module. */
struct core {
    PyTypeObject *record, *tensor, *request, *response, *sender;
    PyTypeObject *request_made; /* what arriving requests are: request, or what Python made of it */
    PyObject *exception, *error; /* TritonModelException, TritonError */
    PyObject *sent;              /* by id: what must live until the server has read it */
    PyObject *nothing;           /* "" */
    PyObject *parameters;        /* "{}" */
    bool decoupled;
};
extern struct core core;

/* core_fail - raise TritonModelException. Returns NULL. */
void *core_fail(const char *format, ...);

/* core_text - write a str. False: an exception is set. */
bool core_text(struct wire_out *out, PyObject *text);

/* core_whole - whether a text holds no zero byte, behind which nothing would be seen. False: an
 * exception is set.
 * core_name - write a str that has to be whole. */
bool core_whole(PyObject *text);
bool core_name(struct wire_out *out, PyObject *name);

/* core_said - the same for what is said of an error, of which much is cut. */
bool core_said(struct wire_out *out, PyObject *text);

/* core_str, core_str_within - read a text as a str. NULL: an exception is set. */
PyObject *core_str(struct wire_in *in);
PyObject *core_str_within(struct wire_in *in, PyObject *unused);

/* core_list - read a list, of what `read` reads.
 * record  a record_object, for `read`
 * errors  NULL with an exception */
typedef PyObject *core_read_fn(struct wire_in *in, PyObject *record);
PyObject *core_list(struct wire_in *in, core_read_fn *read, PyObject *record);

/* core_wait - channel_wait without the interpreter's lock. */
struct channel_record *core_wait(uint64_t id);

/* A record as a Python object: what lies in it lives as long. */
struct record_object {
    PyObject_HEAD struct channel_record *record;
};
PyObject *record_wrap(struct channel_record *record); /* takes over */

/* record_of_place - a record of its own, which gives a place in the shared memory back. */
PyObject *record_of_place(uint64_t place);

/* What a record points at, beside what is in it. */
struct lending {
    bool any;
    bool failed;    /* a copy from a GPU, as the exception that is set says */
    PyObject *kept; /* a list of what keeps what the server reads, as its copies; NULL = none */
};

/* response_read, response_write - as tensor_read and tensor_write (tensor.h).
 * requested  a list of str: of the outputs, those are written */
PyObject *response_read(struct wire_in *in, PyObject *record);
bool response_write(struct wire_out *out, PyObject *response, PyObject *requested,
                    struct lending *lent);
bool response_is(PyObject *object);

struct request {
    PyObject_HEAD PyObject *id, *correlation, *inputs, *outputs, *parameters, *model, *context;
    PyObject *sender; /* of one that came */
    int64_t version;
    uint32_t flags;
    uint32_t release;
    uint64_t timeout;
    uint64_t handle; /* the server's number for it; 0 = one that was made here */
    uint64_t trace;  /* the request that it belongs to, for a nested one */
};
PyObject *request_read(struct wire_in *in, PyObject *record);
bool request_write(struct wire_out *out, PyObject *request, bool decoupled, struct lending *lent);
bool request_is(PyObject *object);

/* request_input - find an input by its name; a new reference, None where there is none. */
PyObject *request_input(PyObject *request, PyObject *name);

/* A sender, the one of a request. */
struct sender {
    PyObject_HEAD uint64_t handle;
    PyObject *outputs;
    uint64_t count; /* of responses */
    bool closed;    /* no more may be sent */
};
PyObject *sender_new(uint64_t handle, PyObject *outputs);

/* sender_count - note a response, or refuse it with an exception. */
bool sender_count(struct sender *sender, bool response, uint32_t flags);

extern PyType_Spec tensor_spec, request_spec, response_spec, sender_spec, record_spec;
