#pragma once
/* The types of an extension module. */
#include "cpython.h"

#include <stdbool.h>
#include <stddef.h>

struct types_entry {
    PyTypeObject **place; /* where the module keeps it */
    PyType_Spec *spec;
    const char *name; /* in the module */
};

/* types_add - make types and add them to a module.
 * returns  false with an exception */
bool types_add(PyObject *module, const struct types_entry *entries, size_t count);

/* types_free - what an object of such a type does last, when its fields are freed. */
void types_free(PyObject *self);
