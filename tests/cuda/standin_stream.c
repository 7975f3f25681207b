/* Streams and events. What is queued is done when somebody waits for it, and not before; while a
 * stream is recorded, it goes to a graph: standin_graph.c. */
#include "standin_stream.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_MAGIC 0x5354524du
#define EVENT_MAGIC  0x4556454eu

#define HIGHEST_PRIORITY (-5)

/* Marks how far a stream was when it was recorded. */
struct cuda_event {
    unsigned magic;
    struct cuda_stream *stream; /* NULL = not recorded */
    unsigned long mark;
};

static struct cuda_stream *streams;
static struct cuda_stream defaults[STANDIN_DEVICES];

static void run_until(struct cuda_stream *s, unsigned long mark)
{
    while (s->first && s->done < mark) {
        struct standin_operation *o = s->first;
        if (o->after)
            run_until(o->after, o->mark);
        else if (!o->is_fill)
            memmove(o->to, o->from, o->bytes);
        else
            memset(o->to, o->value, o->bytes);
        standin_block_use(o->blocks[0], -1);
        standin_block_use(o->blocks[1], -1);
        s->first = o->next;
        if (!s->first)
            s->last = &s->first;
        s->done++;
        free(o);
    }
}

struct cuda_stream *standin_stream_of(struct cuda_stream *handle, int *ret_result)
{
    struct standin_device *d = standin_current(ret_result);
    if (!d)
        return NULL;
    struct cuda_stream *s = handle ? handle : &defaults[standin_device_id(d)];
    if (!handle && !s->magic)
        *s = (struct cuda_stream){.magic = STREAM_MAGIC, .device = d, .last = &s->first};
    if (s->magic == STREAM_MAGIC)
        return s;
    *ret_result = standin_wrong(CUDA_ERROR_INVALID_HANDLE, "a stream that is none");
    return NULL;
}

void standin_enqueue(struct cuda_stream *s, const struct standin_operation *o)
{
    if (standin_graph_takes(s, o))
        return;
    struct standin_operation *copy = malloc(sizeof(*copy));
    *copy = *o;
    copy->next = NULL;
    standin_block_use(o->blocks[0], 1);
    standin_block_use(o->blocks[1], 1);
    *s->last = copy;
    s->last = &copy->next;
    s->queued++;
}

int standin_resolve_both(struct standin_operation *o)
{
    o->to = standin_resolve(o->to_address, o->bytes, &o->blocks[0]);
    if (!o->is_fill)
        o->from = standin_resolve(o->from_address, o->bytes, &o->blocks[1]);
    bool good = o->to && (o->is_fill ? o->blocks[0] != NULL : o->from != NULL);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Under the lock. Priorities change nothing: what is queued is done when somebody waits. */
static int stream_make(struct cuda_stream **ret, unsigned flags, int priority)
{
    int rc = CUDA_SUCCESS;
    struct standin_device *d = standin_current(&rc);
    if (!d || flags > CUDA_STREAM_NON_BLOCKING || priority < HIGHEST_PRIORITY || priority > 0)
        return d ? CUDA_ERROR_INVALID_VALUE : rc;
    struct cuda_stream *s = calloc(1, sizeof(*s));
    *s = (struct cuda_stream){
        .magic = STREAM_MAGIC, .device = d, .last = &s->first, .next = streams};
    streams = s;
    standin_live(STANDIN_STREAM, 1);
    *ret = s;
    return CUDA_SUCCESS;
}

int cuStreamCreate(struct cuda_stream **ret, unsigned flags)
{
    int rc = standin_begin(STANDIN_cuStreamCreate);
    return rc ? rc : standin_end(stream_make(ret, flags, 0));
}

int cuStreamCreateWithPriority(struct cuda_stream **ret, unsigned flags, int priority)
{
    int rc = standin_begin(STANDIN_cuStreamCreateWithPriority);
    return rc ? rc : standin_end(stream_make(ret, flags, priority));
}

int cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
    int rc = standin_begin(STANDIN_cuCtxGetStreamPriorityRange);
    if (rc)
        return rc;
    *ret_least = 0;
    *ret_greatest = HIGHEST_PRIORITY;
    return standin_end(standin_current(&rc) ? CUDA_SUCCESS : rc);
}

int cuStreamDestroy_v2(struct cuda_stream *handle)
{
    int rc = standin_begin(STANDIN_cuStreamDestroy_v2);
    if (rc)
        return rc;
    struct cuda_stream *s = handle ? standin_stream_of(handle, &rc) : NULL;
    if (!s)
        return standin_end(rc ? rc : CUDA_ERROR_INVALID_HANDLE);
    run_until(s, s->queued);
    struct cuda_stream **at = &streams;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->magic = 0;
    free(s);
    standin_live(STANDIN_STREAM, -1);
    return standin_end(CUDA_SUCCESS);
}

int cuStreamSynchronize(struct cuda_stream *handle)
{
    int rc = standin_begin(STANDIN_cuStreamSynchronize);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    if (s)
        run_until(s, s->queued);
    return standin_end(rc);
}

int cuCtxSynchronize(void)
{
    int rc = standin_begin(STANDIN_cuCtxSynchronize);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    struct standin_device *d = standin_current(&rc);
    if (!d)
        return standin_end(rc);
    for (struct cuda_stream *s = streams; s; s = s->next)
        if (s->device == d)
            run_until(s, s->queued);
    run_until(&defaults[standin_device_id(d)], defaults[standin_device_id(d)].queued);
    return standin_end(rc);
}

int cuStreamWaitEvent(struct cuda_stream *handle, struct cuda_event *e, unsigned flags)
{
    int rc = standin_begin(STANDIN_cuStreamWaitEvent);
    if (rc)
        return rc;
    (void)flags;
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    if (s && e->magic != EVENT_MAGIC)
        rc = standin_wrong(CUDA_ERROR_INVALID_HANDLE, "an event that is none");
    else if (s && e->stream && e->stream != s)
        standin_enqueue(s, &(struct standin_operation){.after = e->stream, .mark = e->mark});
    return standin_end(rc);
}

int cuMemcpyAsync(cuda_address to, cuda_address from, size_t bytes, struct cuda_stream *handle)
{
    int rc = standin_begin(STANDIN_cuMemcpyAsync);
    if (rc)
        return rc;
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    if (!s)
        return standin_end(rc);
    struct standin_operation o = {.to_address = to, .from_address = from, .bytes = bytes};
    rc = standin_resolve_both(&o);
    if (!rc)
        standin_enqueue(s, &o);
    return standin_end(rc);
}

/* Has ended when it returns, whatever comes of it. */
int cuMemcpyDtoH_v2(void *to, cuda_address from, size_t bytes)
{
    int rc = standin_begin(STANDIN_cuMemcpyDtoH_v2);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    struct standin_block *block;
    const void *source = standin_current(&rc) ? standin_resolve(from, bytes, &block) : NULL;
    if (!source || !block)
        return standin_end(rc ? rc : CUDA_ERROR_INVALID_VALUE);
    memmove(to, source, bytes);
    return standin_end(CUDA_SUCCESS);
}

int cuMemsetD8Async(cuda_address to, unsigned char value, size_t bytes, struct cuda_stream *handle)
{
    int rc = standin_begin(STANDIN_cuMemsetD8Async);
    if (rc)
        return rc;
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    if (!s)
        return standin_end(rc);
    struct standin_operation o = {
        .is_fill = true, .to_address = to, .bytes = bytes, .value = value};
    rc = standin_resolve_both(&o);
    if (!rc)
        standin_enqueue(s, &o);
    return standin_end(rc);
}

int cuEventCreate(struct cuda_event **ret, unsigned flags)
{
    int rc = standin_begin(STANDIN_cuEventCreate);
    if (rc)
        return rc;
    (void)flags;
    if (!standin_current(&rc))
        return standin_end(rc);
    struct cuda_event *e = calloc(1, sizeof(*e));
    e->magic = EVENT_MAGIC;
    standin_live(STANDIN_EVENT, 1);
    *ret = e;
    return standin_end(CUDA_SUCCESS);
}

static int event_check(const struct cuda_event *e)
{
    return e && e->magic == EVENT_MAGIC
               ? CUDA_SUCCESS
               : standin_wrong(CUDA_ERROR_INVALID_HANDLE, "an event that is none");
}

int cuEventDestroy_v2(struct cuda_event *e)
{
    int rc = standin_begin(STANDIN_cuEventDestroy_v2);
    if (rc)
        return rc;
    rc = event_check(e);
    if (rc)
        return standin_end(rc);
    e->magic = 0;
    free(e);
    standin_live(STANDIN_EVENT, -1);
    return standin_end(CUDA_SUCCESS);
}

int cuEventRecord(struct cuda_event *e, struct cuda_stream *handle)
{
    int rc = standin_begin(STANDIN_cuEventRecord);
    if (rc)
        return rc;
    struct cuda_stream *s = standin_stream_of(handle, &rc);
    rc = s ? event_check(e) : rc;
    if (!rc) {
        e->stream = s;
        e->mark = s->queued;
    }
    return standin_end(rc);
}

int cuEventSynchronize(struct cuda_event *e)
{
    int rc = standin_begin(STANDIN_cuEventSynchronize);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    rc = event_check(e);
    if (!rc && e->stream)
        run_until(e->stream, e->mark);
    return standin_end(rc);
}
