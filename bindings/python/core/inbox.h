#pragma once
/* What tells an event loop of Python that calls were answered: a descriptor that becomes readable,
 * and the numbers of those calls. Who answers needs no GIL for it. */
#include "core.h"

struct inbox;

struct inbox *inbox_ref(struct inbox *i);
void inbox_unref(struct inbox *i); /* NULL is fine */

/* inbox_post - the call with this number has news. Any thread. */
void inbox_post(struct inbox *i, uint64_t number);

/* inbox_object_of - the inbox of an object of core.inbox; borrowed. */
struct inbox *inbox_object_of(PyObject *object);
