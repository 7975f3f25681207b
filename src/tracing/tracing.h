#pragma once
/* Which requests are traced, and where their traces go: the room's door. A server has one of them
 * from its beginning to its end, also while nothing is traced: clients may ask for traces.
 *
 * A front end that is about to submit a request asks tracing_on, which costs it a branch; the rest
 * only for requests of a server where something is traced. */
#include "base/err.h"
#include "os/clock.h"
#include "tracing/tracing_settings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options_trace;
struct request;
struct tracing;
struct tracing_record;

/* tracing_open - what the options ask for; nothing is opened or sent before there is a trace.
 * o       borrowed until tracing_close
 * errors  INVALID_ARG: of the environment (OTEL_BSP_*); INTERNAL: the module that sends traces
 *         cannot be loaded */
struct err *tracing_open(const struct options_trace *o, struct tracing **ret);

/* tracing_close - what was traced is written, or sent if that takes no longer than `most`. No
 * request is left. Blocks. NULL is fine. */
void tracing_close(struct tracing *t, time_ns most);

/* The word that front ends look at: whether any settings trace something. Relaxed: a request that
 * comes at the same time as a change is of before or after it. */
struct tracing_switch {
    atomic_bool on;
};

static inline bool tracing_on(const struct tracing *t)
{
    return atomic_load_explicit(&((const struct tracing_switch *)(const void *)t)->on,
                                memory_order_relaxed);
}

/* A header that the request came with, NULL = it did not. */
struct tracing_header {
    const char *text;
    size_t len;
};

/* tracing_wants_context - whether traceparent and tracestate are of use. */
bool tracing_wants_context(const struct tracing *t);

/* tracing_begin - decide about a request, by the settings of its model as they are now.
 * returns  NULL: it is not traced; else the front end's: tracing_end */
struct tracing_record *tracing_begin(struct tracing *t, const char *model,
                                     struct tracing_header traceparent,
                                     struct tracing_header tracestate);

/* tracing_follow - r, which is about to be submitted, is the request. */
void tracing_follow(struct tracing_record *record, struct request *r, const char *model,
                    int64_t version);

/* tracing_mark - a time of the front end's. name: static. */
void tracing_mark(struct tracing_record *record, const char *name, time_ns when);

/* tracing_end - the front end has nothing more to say of it. NULL is fine. */
void tracing_end(struct tracing_record *record);

/* tracing_change - change the settings of a model, or with "" those that hold for all.
 * errors  INVALID_ARG, in the reference's words: nothing can be traced so. Nothing is changed
 *         then */
struct err *tracing_change(struct tracing *t, const char *model, const struct tracing_change *c);

#define TRACING_MOST_TOLD 48u

/* What clients are told: the settings as text. */
struct tracing_told {
    struct tracing_values values;
    const char *file; /* NULL = they go elsewhere */
    const char *mode;
    struct {
        const char *key;
        const char *value;
    } more[TRACING_MOST_TOLD]; /* of the mode; more_count of them */
    size_t more_count;
};

/* tracing_told_first - whether the i-th of `more` is the first that has its key. */
bool tracing_told_first(const struct tracing_told *told, size_t i);

/* tracing_told_next - the next one behind the i-th that has its key; more_count: there is none. */
size_t tracing_told_next(const struct tracing_told *told, size_t i);

/* tracing_tell - the settings of a model, or with "" those for all. Texts are good as long as t. */
void tracing_tell(struct tracing *t, const char *model, struct tracing_told *ret);
