#pragma once
/* Traces sent to an OpenTelemetry collector: OTLP over HTTP, in batches, by a thread of its own,
 * which is there while there is something to send. Nobody waits for it: what the queue has no
 * place for, and what a collector does not take, is thrown away, and the log says how much. */
#include "base/err.h"
#include "os/clock.h"

#include <stddef.h>
#include <stdint.h>

struct tracing_export;
struct tracing_record;

struct tracing_export_settings {
    const char *url;
    const char *const *resource; /* "key=value", the last of a key counts; resource_count of them */
    size_t resource_count;
    uint32_t queue; /* spans that may wait */
    uint32_t batch; /* so many are sent at once, if they are there; */
    time_ns delay;  /* what is there is sent when it has waited so long */
};

/* tracing_export_new - errors: INTERNAL when the module that speaks HTTP cannot be loaded. */
struct err *tracing_export_new(const struct tracing_export_settings *s,
                               struct tracing_export **ret);

/* tracing_export_push - have a record sent, which is taken over. Does not block. Any thread,
 * without locks of rank THREAD or above. */
void tracing_export_push(struct tracing_export *x, struct tracing_record *r);

/* tracing_export_free - what waits is sent first, if that takes no longer than `most`. Blocks.
 * NULL is fine. */
void tracing_export_free(struct tracing_export *x, time_ns most);
