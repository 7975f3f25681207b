#pragma once
/* The orders that load a backend, a model and its instances in the process of an isolated model.
 * Private to isolate/.
 *
 * Each returns NULL or an error: the backend's, or that the process ended, in which case
 * *ret_lost is true. Blocks. */
#include "base/err.h"

#include <stdbool.h>

struct isolate;
struct isolate_instance;
struct isolate_reply;
struct isolate_session;

struct err *isolate_load_backend(struct isolate *iso, struct isolate_session *s,
                                 struct isolate_reply *reply, bool *ret_lost);
struct err *isolate_load_model(struct isolate *iso, struct isolate_session *s,
                               struct isolate_reply *reply, bool *ret_lost);

/* isolate_load_config - tell the process the published configuration, if there is one. */
struct err *isolate_load_config(struct isolate *iso, struct isolate_session *s, bool *ret_lost);

/* isolate_load_instance - load an instance; sets inst->next_lane. */
struct err *isolate_load_instance(struct isolate *iso, struct isolate_session *s,
                                  struct isolate_instance *inst, bool *ret_lost);

/* isolate_load_all - load everything in a process that replaces another one. */
struct err *isolate_load_all(struct isolate *iso, struct isolate_session *s, bool *ret_lost);
