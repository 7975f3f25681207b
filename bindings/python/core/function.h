#pragma once
/* A function of Python that is a model. Counted: by the model, and by calls that run. */
#include "core.h"

#include <stdatomic.h>

struct function {
    PyObject *run; /* of Python: a list of requests to a list of results */
    char *name;    /* of the model */
    bool batches;
    uint64_t timeout_ns; /* 0 = none */
    atomic_uint refs;    /* acquire and release: the last one frees */
    atomic_uint left; /* calls that have not returned in time, and have not yet; orders nothing */
};

/* function_new - take up what Python has bound to a model. With the GIL.
 * found   (run, time-out in seconds, whether it batches)
 * errors  NULL with an exception */
struct function *function_new(const char *model, PyObject *found);

struct function *function_ref(struct function *f);
void function_unref(struct function *f); /* without the GIL; NULL is fine */

/* function_left, function_returned - a call was left behind; it has returned after all. */
void function_left(struct function *f);
void function_returned(struct function *f);
unsigned function_count_left(struct function *f);
