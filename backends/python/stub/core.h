#pragma once

/* The stub's extension module, in the interface that every CPython from 3.9 has. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "../link.h"
#include "../wire.h"
#include "channel.h"

/* What the module keeps, made by core.c. One interpreter, one module. */
struct core {
    PyTypeObject *record, *tensor, *request, *response, *sender;
    PyTypeObject *request_made; /* what arriving requests are: request, or what Python made of it */
    PyObject *exception, *error; /* TritonModelException, TritonError */
    PyObject *ndarray, *asarray, *ascontiguous, *empty, *object; /* of numpy, once it was needed */
    PyObject *sent;       /* by id: what must live until the server has read it */
    PyObject *nothing;    /* "" */
    PyObject *parameters; /* "{}" */
    PyObject *structure;  /* "__array_struct__" */
    bool decoupled;
};
extern struct core core;

/* core_fail - raise TritonModelException. Returns NULL. */
void *core_fail(const char *format, ...);

/* core_numpy - import numpy, once. False: an exception is set. */
bool core_numpy(void);

/* core_text - write a str. False: an exception is set. */
bool core_text(struct wire_out *out, PyObject *text);

/* core_str - read a text as a str. NULL: an exception is set. */
PyObject *core_str(struct wire_in *in);

/* A record as a Python object: what lies in it lives as long. */
struct record_object {
    PyObject_HEAD struct channel_record *record;
};
PyObject *record_wrap(struct channel_record *record); /* takes over */

struct tensor {
    PyObject_HEAD PyObject *name;
    uint32_t datatype;
    uint32_t rank;
    int64_t *shape; /* `few`, or allocated */
    int64_t few[4];
    char *data;
    uint64_t bytes;
    PyObject *owner; /* what keeps `data` */
    PyObject *array; /* the numpy array that it was made of, or that was made of its texts */
};

/* tensor_read - make a tensor of what lies in a record.
 * record  a record_object, kept by the tensor
 * errors  NULL with an exception */
PyObject *tensor_read(struct wire_in *in, PyObject *record);

/* What a record points at, beside what is in it. */
struct lending {
    bool any;
    PyObject *places; /* a list of record_object, of copies that the server reads; NULL = none */
};

/* tensor_write - describe a tensor for the server.
 * lent     gains what the server reads at its place, which must stay until it did
 * returns  false with an exception */
bool tensor_write(struct wire_out *out, PyObject *tensor, struct lending *lent);

bool tensor_is(PyObject *object);
PyObject *tensor_name(PyObject *tensor); /* borrowed */

/* response_read, response_write - the same for responses; what is written is pruned to the outputs
 * that are asked for. requested = a list of str. */
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

/* send_record - send what was written; what lies elsewhere is kept until it was read.
 * out, lent  emptied
 * kept       what the record points at
 * wait       return when it was read
 * returns    false with an exception */
bool send_record(uint32_t kind, struct wire_out *out, struct lending *lent, PyObject *kept,
                 bool wait);

/* share_bytes - copy bytes to where the server can read them, for one that cannot read this
 * process.
 * returns  an offset in the shared memory; 0 with an exception */
uint64_t share_bytes(const void *bytes, uint64_t count, struct lending *lent);

extern PyType_Spec tensor_spec, request_spec, response_spec, sender_spec, record_spec;
