#pragma once
/* Who it was that broke a rule of the C ABI: by what the calling thread executes, else by the
 * library that the call came from. */

struct plugin_model;

/* offender_enter, offender_leave - a model lives; its backend's library can be told from here
 * on. Any thread. */
void offender_enter(struct plugin_model *m);
void offender_leave(struct plugin_model *m);

/* offender_name - "backend 'x' of model 'm', instance 'm_0_0'", or as much of it as can be known.
 * caller   an address in the code that called
 * returns  the caller's (mem_free) */
char *offender_name(const void *caller);
