#pragma once
/* The package's extension module, in the interface that every CPython from 3.9 has. */
#include "common/cpython/types.h"

#include "triton/core/tritonserver.h"

#include <stdbool.h>
#include <stdint.h>

/* What the module keeps, filled by core.c and by adopt(). One interpreter, one module. */
struct core {
    PyTypeObject *server, *call, *inbox, *memory, *lent, *held;
    PyObject *error;    /* nereid.Error(message, code) */
    PyObject *asarray;  /* numpy.asarray */
    PyObject *plain;    /* an array in the layout that the server reads; of Python */
    PyObject *texts;    /* a list of bytes and a shape as an array of objects; of Python */
    PyObject *bfloat16; /* an array of 16 bits and of type BF16 as one of float32; of Python */
    PyObject *function; /* what runs a model, by its name and its configuration; of Python */
};
extern struct core core;

/* core_check - raise the error of the server and free it.
 * returns  true without an error; false with an exception */
bool core_check(TRITONSERVER_Error *e);

/* core_code - a number as a status code: UNKNOWN where a model made it up. */
TRITONSERVER_Error_Code core_code(long code);

/* core_raise - raise nereid.Error. Returns NULL. */
void *core_raise(TRITONSERVER_Error_Code code, const char *message);

/* core_exception - take the exception that is set; a new reference, NULL = none. */
PyObject *core_exception(void);

/* core_error - an exception as an error of the server, which says what str() of it does.
 * exception  taken over; NULL is fine */
TRITONSERVER_Error *core_error(PyObject *exception, TRITONSERVER_Error_Code code);

/* core_wrap - raise nereid.Error INVALID_ARG "<what> '<name>': ..." in place of the exception. */
void core_wrap(const char *what, const char *name);

/* server_watch_forks - from now on servers know which processes are forked from theirs. */
bool server_watch_forks(void);

extern PyType_Spec server_spec, call_spec, inbox_spec, memory_spec, lent_spec, held_spec;
