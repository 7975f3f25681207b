#include "infer/trace.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/request.h"
#include "infer/response.h"
#include "os/mutex.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#define TRACE_MAGIC 0x54524143u

#define OLD_LEVELS (TRITONSERVER_TRACE_LEVEL_MIN | TRITONSERVER_TRACE_LEVEL_MAX)

struct trace {
    uint32_t magic;
    uint32_t level;
    uint64_t id;
    uint64_t parent;
    struct trace_listener listener;
    char *model;
    int64_t version;
    char *request_id;
    struct mutex lock; /* rank LEAF; guards context: custom activities come from any thread */
    char *context;
};

static _Atomic(uint64_t) next_id = 1; /* relaxed: the numbers only have to differ */

const char *trace_activity_name(TRITONSERVER_InferenceTraceActivity activity)
{
    static const char *const names[] = {
        "REQUEST_START",        "QUEUE_START",           "COMPUTE_START",   "COMPUTE_INPUT_END",
        "COMPUTE_OUTPUT_START", "COMPUTE_END",           "REQUEST_END",     "TENSOR_QUEUE_INPUT",
        "TENSOR_BACKEND_INPUT", "TENSOR_BACKEND_OUTPUT", "CUSTOM_ACTIVITY",
    };
    size_t i = (size_t)activity;
    return i < sizeof(names) / sizeof(names[0]) ? names[i] : "<unknown>";
}

struct trace *trace_new(uint32_t level, uint64_t parent, const struct trace_listener *listener)
{
    struct trace *t = MEM_NEW(struct trace);
    t->magic = TRACE_MAGIC;
    t->level = level & OLD_LEVELS
                   ? (level & ~(uint32_t)OLD_LEVELS) | TRITONSERVER_TRACE_LEVEL_TIMESTAMPS
                   : level;
    t->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
    t->parent = parent;
    t->listener = *listener;
    t->model = mem_strdup("");
    t->version = -1;
    t->request_id = mem_strdup("");
    mutex_init(&t->lock, MUTEX_RANK_LEAF);
    t->context = mem_strdup("");
    if (listener->ref)
        listener->ref(listener->userp);
    return t;
}

struct trace *trace_spawn(const struct trace *t)
{
    return trace_new(t->level, t->id, &t->listener);
}

void trace_free(struct trace *t)
{
    if (!t)
        return;
    t->magic = 0;
    mutex_fini(&t->lock);
    mem_free(t->model);
    mem_free(t->request_id);
    mem_free(t->context);
    if (t->listener.unref)
        t->listener.unref(t->listener.userp);
    mem_free(t);
}

struct trace *trace_of(const void *handle)
{
    struct trace *t = (struct trace *)(uintptr_t)handle;
    return t && t->magic == TRACE_MAGIC ? t : NULL;
}

static void replace(char **text, const char *with)
{
    mem_free(*text);
    *text = mem_strdup(with);
}

TRITONSERVER_InferenceTrace *trace_handle(struct trace *t)
{
    return (TRITONSERVER_InferenceTrace *)t;
}

void trace_request(struct request *r, struct trace *t, const char *model, int64_t version)
{
    r->trace = t;
    replace(&t->model, model);
    replace(&t->request_id, r->id);
    t->version = version;
    trace_report(t, TRITONSERVER_TRACE_REQUEST_START, r->times.start);
    trace_inputs(r, TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT);
    trace_report(t, TRITONSERVER_TRACE_QUEUE_START, clock_now_ns());
}

void trace_report(struct trace *t, TRITONSERVER_InferenceTraceActivity activity, time_ns when)
{
    if ((t->level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS) && t->listener.activity)
        t->listener.activity(trace_handle(t), activity, when, t->listener.userp);
}

/* Adds a member to the context. A context that is not a JSON object is replaced. */
static char *add_member(const char *context, time_ns when, const char *name)
{
    char key[24];
    snprintf(key, sizeof(key), "%" PRIu64, (uint64_t)when);
    yyjson_doc *old = yyjson_read(context, strlen(context), 0);
    yyjson_mut_doc *doc = old ? yyjson_doc_mut_copy(old, NULL) : yyjson_mut_doc_new(NULL);
    CHECK(doc);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    if (!yyjson_mut_is_obj(root)) {
        root = yyjson_mut_obj(doc);
        yyjson_mut_doc_set_root(doc, root);
    }
    yyjson_mut_obj_put(root, yyjson_mut_strcpy(doc, key), yyjson_mut_strcpy(doc, name));
    char *text = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
    CHECK(text);
    yyjson_mut_doc_free(doc);
    yyjson_doc_free(old);
    return text;
}

void trace_report_custom(struct trace *t, time_ns when, const char *name)
{
    if (!(t->level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS))
        return;
    mutex_lock(&t->lock);
    char *fresh = add_member(t->context, when, name);
    mem_free(t->context);
    t->context = fresh;
    mutex_unlock(&t->lock);
    if (t->listener.named)
        t->listener.named(t, name, when, t->listener.userp);
    else
        trace_report(t, TRITONSERVER_TRACE_CUSTOM_ACTIVITY, when);
}

static bool wants_tensors(const struct trace *t)
{
    return (t->level & TRITONSERVER_TRACE_LEVEL_TENSORS) && t->listener.tensor;
}

void trace_tensor(struct trace *t, TRITONSERVER_InferenceTraceActivity activity, const char *name,
                  enum datatype datatype, const void *data, size_t bytes, const int64_t *shape,
                  uint64_t rank)
{
    if (wants_tensors(t))
        t->listener.tensor(trace_handle(t), activity, name, (TRITONSERVER_DataType)datatype, data,
                           bytes, shape, rank, TRITONSERVER_MEMORY_CPU, 0, t->listener.userp);
}

/* An input that lies in several pieces is told as one run of bytes. */
static void trace_input(struct trace *t, const struct tensor_input *in,
                        TRITONSERVER_InferenceTraceActivity activity)
{
    char *copy = NULL;
    const void *data = in->piece_count ? in->pieces[0].data : NULL;
    if (in->piece_count > 1) {
        copy = mem_try_alloc(in->byte_size ? in->byte_size : 1, 64);
        if (!copy)
            return;
        uint64_t at = 0;
        for (uint32_t i = 0; i < in->piece_count; at += in->pieces[i++].size)
            if (in->pieces[i].size)
                memcpy(copy + at, in->pieces[i].data, in->pieces[i].size);
        data = copy;
    }
    trace_tensor(t, activity, in->name, in->datatype, data, in->byte_size, in->shape, in->rank);
    mem_free(copy);
}

void trace_inputs(const struct request *r, TRITONSERVER_InferenceTraceActivity activity)
{
    if (!wants_tensors(r->trace))
        return;
    for (uint32_t i = 0; i < r->input_count; i++)
        trace_input(r->trace, &r->inputs[i], activity);
}

void trace_outputs(const struct response *r, TRITONSERVER_InferenceTraceActivity activity)
{
    struct trace *t = r->request->trace;
    if (!wants_tensors(t))
        return;
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        t->listener.tensor(trace_handle(t), activity, o->name, (TRITONSERVER_DataType)o->datatype,
                           o->data, o->byte_size, o->shape, o->rank,
                           (TRITONSERVER_MemoryType)o->memory, o->device, t->listener.userp);
}

void trace_release(struct trace *t)
{
    t->listener.release(trace_handle(t), t->listener.userp);
}

uint64_t trace_id(const struct trace *t)
{
    return t->id;
}

uint64_t trace_parent(const struct trace *t)
{
    return t->parent;
}

const char *trace_model(const struct trace *t)
{
    return t->model;
}

int64_t trace_version(const struct trace *t)
{
    return t->version;
}

const char *trace_request_id(const struct trace *t)
{
    return t->request_id;
}

const char *trace_context(struct trace *t)
{
    mutex_lock(&t->lock);
    const char *context = t->context;
    mutex_unlock(&t->lock);
    return context;
}

void trace_set_context(struct trace *t, const char *json)
{
    mutex_lock(&t->lock);
    replace(&t->context, json);
    mutex_unlock(&t->lock);
}
