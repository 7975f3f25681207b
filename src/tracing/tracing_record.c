#include "tracing/tracing_record.h"

#include "base/budget.h"
#include "base/mem.h"
#include "infer/trace.h"
#include "os/entropy.h"

#include <stdio.h>
#include <string.h>

#define RECORD_STEP ((size_t)4096)
#define STATE_JSON  (2 * TRACING_MAX_STATE_BYTES + TRACING_CONTEXT_BYTES + 64u)

static _Atomic(size_t) held; /* relaxed: a sum that orders nothing */

size_t tracing_record_held(void)
{
    return atomic_load_explicit(&held, memory_order_relaxed);
}

static bool record_charge(struct tracing_record *r, size_t n)
{
    size_t before = atomic_fetch_add_explicit(&held, n, memory_order_relaxed);
    if (n > TRACING_RECORD_MOST_BYTES || before > TRACING_RECORD_MOST_BYTES - n ||
        !budget_charge(n)) {
        atomic_fetch_sub_explicit(&held, n, memory_order_relaxed);
        return false;
    }
    r->charged += n;
    r->room += n;
    return true;
}

/* NULL, and counted, where there is no room. */
static void *record_alloc(struct tracing_record *r, size_t n)
{
    size_t rounded = (n + 15) & ~(size_t)15;
    if (rounded < n ||
        (rounded > r->room && !record_charge(r, rounded > RECORD_STEP ? rounded : RECORD_STEP)))
        return NULL;
    void *p = arena_try_alloc(&r->arena, rounded, 16);
    if (p)
        r->room -= rounded;
    return p;
}

static const char *record_text(struct tracing_record *r, const char *s)
{
    size_t len = strlen(s) + 1;
    char *copy = record_alloc(r, len);
    if (copy)
        memcpy(copy, s, len);
    return copy;
}

struct tracing_record *tracing_record_new(uint32_t level, void (*done)(struct tracing_record *r),
                                          void *owner)
{
    struct tracing_record *r = MEM_NEW(struct tracing_record);
    if (!record_charge(r, RECORD_STEP)) {
        mem_free(r);
        return NULL;
    }
    r->done = done;
    r->owner = owner;
    r->level = level;
    r->last_node = &r->nodes;
    r->last_activity = &r->activities;
    r->spans = 1;
    atomic_init(&r->refs, 1);
    list_init(&r->node);
    mutex_init(&r->lock, MUTEX_RANK_LEAF);
    arena_init(&r->arena, NULL, 0);
    return r;
}

void tracing_record_free(struct tracing_record *r)
{
    if (!r)
        return;
    arena_fini(&r->arena);
    mutex_fini(&r->lock);
    atomic_fetch_sub_explicit(&held, r->charged, memory_order_relaxed);
    budget_release(r->charged);
    mem_free(r);
}

void tracing_record_spans(struct tracing_record *r, const struct tracing_context *parent,
                          const char *state, size_t state_len)
{
    r->has_spans = true;
    r->begun = clock_now_ns();
    r->wall_offset = clock_wall_ns() - r->begun;
    entropy_bytes(r->self.span_id, sizeof(r->self.span_id));
    r->self.flags = 1;
    if (!parent) {
        entropy_bytes(r->self.trace_id, sizeof(r->self.trace_id));
        return;
    }
    memcpy(r->self.trace_id, parent->trace_id, sizeof(r->self.trace_id));
    memcpy(r->parent_span_id, parent->span_id, sizeof(r->parent_span_id));
    char *copy = state && tracing_context_state_fits(state, state_len)
                     ? record_alloc(r, state_len + 1)
                     : NULL;
    if (!copy)
        return;
    memcpy(copy, state, state_len);
    copy[state_len] = '\0';
    r->state = copy;
}

/* NULL when there is no room for it. */
static struct tracing_node *find_node(struct tracing_record *r, const struct trace *t)
{
    struct tracing_node *n = r->nodes;
    for (; n; n = n->next)
        if (n->id == trace_id(t))
            return n;
    if (r->count >= TRACING_RECORD_MOST_ACTIVITIES)
        return NULL;
    const char *model = record_text(r, trace_model(t));
    const char *request_id = record_text(r, trace_request_id(t));
    n = model && request_id ? record_alloc(r, sizeof(*n)) : NULL;
    if (!n)
        return NULL;
    *n = (struct tracing_node){.id = trace_id(t),
                               .parent = trace_parent(t),
                               .model = model,
                               .version = trace_version(t),
                               .request_id = request_id};
    if (r->has_spans)
        entropy_bytes(n->span_id, sizeof(n->span_id));
    *r->last_node = n;
    r->last_node = &n->next;
    return n;
}

/* a: on the stack; a copy is kept. false: there was no room. */
static bool record_put(struct tracing_record *r, const struct tracing_activity *a)
{
    bool full = r->count >= TRACING_RECORD_MOST_ACTIVITIES;
    struct tracing_activity *copy = full ? NULL : record_alloc(r, sizeof(*copy));
    if (!copy) {
        r->lost++;
        return false;
    }
    r->count++;
    *copy = *a;
    *r->last_activity = copy;
    r->last_activity = &copy->next;
    return true;
}

void tracing_record_mark(struct tracing_record *r, const char *name, time_ns when)
{
    if (!(r->level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS))
        return;
    mutex_lock(&r->lock);
    record_put(r, &(struct tracing_activity){.name = name, .when = when, .kind = TRACING_MARK});
    mutex_unlock(&r->lock);
}

/* What requests that are made for this one are to carry on: for backends that ask. */
static void tell_context(const struct tracing_record *r, struct trace *t,
                         const uint8_t span_id[TRACING_SPAN_ID_BYTES])
{
    struct tracing_context c = r->self;
    memcpy(c.span_id, span_id, sizeof(c.span_id));
    char parent[TRACING_CONTEXT_BYTES];
    tracing_context_format(&c, parent);
    char json[STATE_JSON];
    int at = snprintf(json, sizeof(json), "{\"traceparent\":\"%s\"", parent);
    if (r->state) {
        at += snprintf(json + at, sizeof(json) - (size_t)at, ",\"tracestate\":\"");
        for (const char *s = r->state; *s; s++) {
            if (*s == '"' || *s == '\\')
                json[at++] = '\\';
            json[at++] = *s;
        }
        json[at++] = '"';
    }
    memcpy(json + at, "}", 2);
    trace_set_context(t, json);
}

static void record_add(struct tracing_record *r, struct trace *t, struct tracing_activity a)
{
    mutex_lock(&r->lock);
    struct tracing_node *n = find_node(r, t);
    a.node = n;
    a.name = n ? a.kind == TRACING_NAMED ? record_text(r, a.name) : a.name : NULL;
    if (!a.name)
        r->lost++;
    else if (record_put(r, &a))
        r->spans += a.kind == TRACING_REQUEST_START || a.kind == TRACING_COMPUTE_START ||
                    a.kind == TRACING_NAMED;
    mutex_unlock(&r->lock);
    if (n && r->has_spans && a.kind == TRACING_REQUEST_START)
        tell_context(r, t, n->span_id);
}

static void record_activity(TRITONSERVER_InferenceTrace *handle,
                            TRITONSERVER_InferenceTraceActivity activity, uint64_t when,
                            void *userp)
{
    enum tracing_kind kind = activity == TRITONSERVER_TRACE_REQUEST_START   ? TRACING_REQUEST_START
                             : activity == TRITONSERVER_TRACE_REQUEST_END   ? TRACING_REQUEST_END
                             : activity == TRITONSERVER_TRACE_COMPUTE_START ? TRACING_COMPUTE_START
                             : activity == TRITONSERVER_TRACE_COMPUTE_END   ? TRACING_COMPUTE_END
                                                                            : TRACING_BETWEEN;
    record_add(userp, trace_of(handle),
               (struct tracing_activity){
                   .name = trace_activity_name(activity), .when = when, .kind = kind});
}

static void record_named(struct trace *t, const char *name, time_ns when, void *userp)
{
    record_add(userp, t,
               (struct tracing_activity){.name = name, .when = when, .kind = TRACING_NAMED});
}

/* The bytes are copied here and made text later, elsewhere: this may be a loop. */
static void record_tensor(TRITONSERVER_InferenceTrace *handle,
                          TRITONSERVER_InferenceTraceActivity activity, const char *name,
                          TRITONSERVER_DataType datatype, const void *base, size_t bytes,
                          const int64_t *shape, uint64_t rank, TRITONSERVER_MemoryType memory,
                          int64_t device, void *userp)
{
    (void)device;
    struct tracing_record *r = userp;
    if (r->has_spans || memory == TRITONSERVER_MEMORY_GPU)
        return;
    mutex_lock(&r->lock);
    struct tracing_node *n = find_node(r, trace_of(handle));
    struct tracing_tensor *t = record_alloc(r, sizeof(*t));
    int64_t *dims = record_alloc(r, (rank ? rank : 1) * sizeof(*dims));
    const char *copy = record_text(r, name);
    if (n && t && dims && copy) {
        void *data = record_alloc(r, bytes ? bytes : 1);
        if (data && bytes)
            memcpy(data, base, bytes);
        if (rank)
            memcpy(dims, shape, rank * sizeof(*dims));
        *t = (struct tracing_tensor){copy, (enum datatype)datatype, rank, dims,
                                     data, data ? bytes : 0};
        record_put(r, &(struct tracing_activity){.node = n,
                                                 .tensor = t,
                                                 .name = trace_activity_name(activity),
                                                 .kind = TRACING_TENSOR});
    } else {
        r->lost++;
    }
    mutex_unlock(&r->lock);
}

static void record_release(TRITONSERVER_InferenceTrace *handle, void *userp)
{
    (void)userp;
    trace_free(trace_of(handle));
}

static void record_ref(void *userp)
{
    struct tracing_record *r = userp;
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
}

static void record_unref(void *userp)
{
    tracing_record_unref(userp);
}

struct trace *tracing_record_trace(struct tracing_record *r)
{
    static const struct trace_listener listener = {.activity = record_activity,
                                                   .tensor = record_tensor,
                                                   .release = record_release,
                                                   .named = record_named,
                                                   .ref = record_ref,
                                                   .unref = record_unref};
    struct trace_listener mine = listener;
    mine.userp = r;
    return trace_new(r->level, 0, &mine);
}

void tracing_record_unref(struct tracing_record *r)
{
    /* Acquire and release: whoever ends it sees all that was put into it. */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    r->ended = clock_now_ns();
    r->done(r);
}
