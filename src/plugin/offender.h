#pragma once
/* Finds out who broke a rule of the C ABI: from what the calling thread executes, else from the
 * library that made the call. */

struct plugin_model;

/* offender_enter, offender_leave - register and unregister a model, so that a library's models
 * can be named. Any thread. */
void offender_enter(struct plugin_model *m);
void offender_leave(struct plugin_model *m);

/* offender_name - "backend 'x' of model 'm', instance 'm_0_0'", or the part of it that is known.
 * caller   an address in the calling code
 * returns  the name; the caller frees it (mem_free) */
char *offender_name(const void *caller);
