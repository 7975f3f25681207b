#pragma once
/* One traced request with all that it led to: steps of ensembles, requests that its model made. It
 * is filled by callbacks of its traces (infer/trace.h) and by the front end, on any thread, and is
 * done when none of them is left; nobody changes it then. */
#include "base/arena.h"
#include "base/list.h"
#include "model/datatype.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "tracing/tracing_context.h"
#include "triton/core/tritonserver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

/* All records together hold no more than this; it is charged to the budget as well. */
#define TRACING_RECORD_MOST_BYTES ((size_t)64 << 20)

/* And one of them no more than so many activities: a backend may report any number. */
#define TRACING_RECORD_MOST_ACTIVITIES 8192u

/* A trace of the C API in it: one request to one model. */
struct tracing_node {
    struct tracing_node *next;
    uint64_t id;
    uint64_t parent; /* 0 = none */
    const char *model;
    int64_t version;
    const char *request_id; /* "" = none */
    uint8_t span_id[TRACING_SPAN_ID_BYTES];
};

enum tracing_kind {
    TRACING_MARK, /* of the front end; node is NULL */
    TRACING_REQUEST_START,
    TRACING_REQUEST_END,
    TRACING_COMPUTE_START,
    TRACING_COMPUTE_END,
    TRACING_BETWEEN,
    TRACING_NAMED, /* by a backend */
    TRACING_TENSOR,
};

struct tracing_tensor {
    const char *name;
    enum datatype datatype;
    uint64_t rank;
    const int64_t *shape;
    const void *data; /* NULL = it was left out */
    size_t bytes;
};

struct tracing_activity {
    struct tracing_activity *next;
    const struct tracing_node *node;
    const struct tracing_tensor *tensor; /* of TRACING_TENSOR */
    const char *name;
    time_ns when;
    enum tracing_kind kind;
};

struct tracing_record {
    struct list node; /* of whoever has it when it is done */
    void (*done)(struct tracing_record *r);
    void *owner;
    atomic_uint refs;
    struct mutex lock; /* rank LEAF; guards what follows until it is done */
    struct arena arena;
    struct tracing_node *nodes; /* the first is the request's own; never NULL when it is done */
    struct tracing_node **last_node;
    struct tracing_activity *activities; /* as they came */
    struct tracing_activity **last_activity;
    size_t charged;
    size_t room;    /* of that not used yet */
    uint32_t level; /* bits of TRITONSERVER_InferenceTraceLevel */
    uint32_t spans; /* that it has as spans */
    uint32_t count; /* of activities */
    uint32_t lost;  /* activities that there was no room for */

    /* Where traces are spans. */
    bool has_spans;
    struct tracing_context self;                   /* the span of the whole */
    uint8_t parent_span_id[TRACING_SPAN_ID_BYTES]; /* zeros = none */
    const char *state;                             /* tracestate; NULL = none */
    time_ns begun;
    time_ns ended;
    time_ns wall_offset; /* of wall time to ours */
};

/* tracing_record_new - with one reference, the caller's; NULL when there is no room.
 * done   called once, when the last reference has ended: the record is its owner's then */
struct tracing_record *tracing_record_new(uint32_t level, void (*done)(struct tracing_record *r),
                                          void *owner);

/* tracing_record_spans - it will be told as spans: who it belongs to.
 * parent  NULL = nobody
 * state   NULL = none; copied */
void tracing_record_spans(struct tracing_record *r, const struct tracing_context *parent,
                          const char *state, size_t state_len);

/* tracing_record_trace - the trace that fills it, for trace_request; it holds a reference. */
struct trace *tracing_record_trace(struct tracing_record *r);

/* tracing_record_mark - a time of the front end. name: static. */
void tracing_record_mark(struct tracing_record *r, const char *name, time_ns when);

void tracing_record_unref(struct tracing_record *r);

/* tracing_record_free - of one that is done; NULL is fine. */
void tracing_record_free(struct tracing_record *r);

/* tracing_record_held - bytes of all records. */
size_t tracing_record_held(void);
