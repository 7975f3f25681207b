#include "function.h"

#include <stdlib.h>
#include <string.h>

struct function *function_new(const char *model, PyObject *found)
{
    PyObject *run;
    double seconds;
    int batches;
    if (!PyArg_ParseTuple(found, "Odp", &run, &seconds, &batches))
        return NULL;
    struct function *f = calloc(1, sizeof *f);
    char *name = strdup(model);
    if (!f || !name) {
        free(f);
        free(name);
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(run);
    f->run = run;
    f->name = name;
    f->batches = batches != 0;
    f->timeout_ns = (uint64_t)(seconds * 1e9);
    atomic_init(&f->refs, 1);
    return f;
}

struct function *function_ref(struct function *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void function_unref(struct function *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(f->run);
    PyGILState_Release(state);
    free(f->name);
    free(f);
}

void function_left(struct function *f)
{
    atomic_fetch_add_explicit(&f->left, 1, memory_order_relaxed);
}

void function_returned(struct function *f)
{
    atomic_fetch_sub_explicit(&f->left, 1, memory_order_relaxed);
}

unsigned function_count_left(struct function *f)
{
    return atomic_load_explicit(&f->left, memory_order_relaxed);
}
