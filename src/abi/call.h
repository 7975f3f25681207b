#pragma once
/* Runs requests of the C API, from a draft to its callbacks. A request never runs inline, nor
 * inside the calling backend, because the caller may itself be inside an Execute. */
#include "base/err.h"

struct draft;
struct serve_table;
struct trace;

/* call_start - submit a request.
 * d       on success owned by the server until its release callback; else still the caller's
 * trace   NULL = none; owned by the server in any case, until its release callback
 * errors  those of table_find and request_prepare; INVALID_ARG without callbacks, or if the
 *         server already has the request */
struct err *call_start(struct serve_table *table, struct draft *d, struct trace *trace);

/* call_cancel - nobody waits for the request any more; the code that executes it can see that.
 * If it still waits in the queue, it is answered with CANCELLED before this returns. Any thread.
 * errors  INTERNAL if the draft was never sent */
struct err *call_cancel(struct draft *d);
