#pragma once
/* Running requests of the C API: from a draft to callbacks. Never inline, and never inside the
 * backend that asks: whoever submits may stand in an Execute of its own. */
#include "base/err.h"

struct draft;
struct serve_table;
struct trace;

/* call_start - run a request.
 * d       the server's until its release callback, on success; else the caller's as before
 * trace   NULL = none; the server's in any case, until its release callback
 * errors  those of table_find and request_prepare; INVALID_ARG without callbacks, or while the
 *         server has the request already */
struct err *call_start(struct serve_table *table, struct draft *d, struct trace *trace);

/* call_cancel - whoever executes the request may see that nobody waits for it; one that still
 * waits in the queue is answered with CANCELLED before this returns. Any thread.
 * errors  INTERNAL before the draft was sent once */
struct err *call_cancel(struct draft *d);
