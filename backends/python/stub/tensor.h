#pragma once

#include "core.h"
#include "triton/core/tritonserver.h"

/* In a tensor's device: it is in the memory of processors. */
enum { TENSOR_ON_HOST = -1 };

struct tensor {
    PyObject_HEAD PyObject *name;
    uint32_t datatype;
    uint32_t rank;
    int64_t *shape; /* `few`, or allocated */
    int64_t few[4];
    int32_t device; /* the GPU whose memory `data` is; TENSOR_ON_HOST */
    char *data;     /* NULL = what `owner` lends was not reached for (tensor_reach) */
    uint64_t bytes;
    bool lent;       /* an input on a GPU: `owner` is of gpu_lent */
    PyObject *owner; /* what keeps `data` */
    PyObject *array; /* the numpy array that it was made of, or that was made of its texts */
};

/* tensor_read - make a tensor of what lies in a record.
 * record  a record_object, kept by the tensor
 * errors  NULL with an exception */
PyObject *tensor_read(struct wire_in *in, PyObject *record);

/* tensor_blank - make a tensor with room for its shape; NULL: an exception is set. */
struct tensor *tensor_blank(uint32_t rank);

/* tensor_name_it - give a tensor its name. False: an exception is set. */
bool tensor_name_it(struct tensor *t, PyObject *name);

/* tensor_reach - see to it that `data` is there. False: an exception is set. */
bool tensor_reach(struct tensor *t);

/* tensor_shape - its dimensions, a list. */
PyObject *tensor_shape(PyObject *tensor, PyObject *unused);

/* tensor_write - describe a tensor for the server.
 * lent     gains what the server reads at its place, which must stay until it did
 * returns  false with an exception */
bool tensor_write(struct wire_out *out, PyObject *tensor, struct lending *lent);

/* tensor_write_all - how many tensors a list has, and each of them. */
bool tensor_write_all(struct wire_out *out, PyObject *tensors, struct lending *lent);

bool tensor_is(PyObject *object);
PyObject *tensor_name(PyObject *tensor); /* borrowed */
