/* Streams and events. What is queued is done when somebody waits for it, and not before. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_MAGIC 0x5354524du
#define EVENT_MAGIC  0x4556454eu

#define HIGHEST_PRIORITY (-5)

/* One thing that a stream was told to do: a copy, a fill, or to wait for an event. */
struct operation {
    struct operation *next;
    void *to;
    const void *from; /* NULL = fill */
    size_t bytes;
    unsigned char value;
    struct standin_block *blocks[2]; /* that it uses */
    struct cuda_stream *after;       /* NULL = waits for nothing */
    unsigned long mark;
};

struct cuda_stream {
    unsigned magic;
    struct cuda_stream *next;
    struct standin_device *device;
    struct operation *first, **last;
    unsigned long queued, done; /* operations */
};

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
        struct operation *o = s->first;
        if (o->after)
            run_until(o->after, o->mark);
        else if (o->from)
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

/* The stream behind a handle; NULL, with *ret_result set, if it is none. */
static struct cuda_stream *stream_of(struct cuda_stream *handle, int *ret_result)
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

static void enqueue(struct cuda_stream *s, const struct operation *o)
{
    struct operation *copy = malloc(sizeof(*copy));
    *copy = *o;
    copy->next = NULL;
    standin_block_use(o->blocks[0], 1);
    standin_block_use(o->blocks[1], 1);
    *s->last = copy;
    s->last = &copy->next;
    s->queued++;
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
    struct cuda_stream *s = handle ? stream_of(handle, &rc) : NULL;
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
    struct cuda_stream *s = stream_of(handle, &rc);
    if (s)
        run_until(s, s->queued);
    return standin_end(rc);
}

int cuCtxSynchronize(void)
{
    int rc = standin_begin(STANDIN_cuCtxSynchronize);
    if (rc)
        return rc;
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
    struct cuda_stream *s = stream_of(handle, &rc);
    if (s && e->magic != EVENT_MAGIC)
        rc = standin_wrong(CUDA_ERROR_INVALID_HANDLE, "an event that is none");
    else if (s && e->stream && e->stream != s)
        enqueue(s, &(struct operation){.after = e->stream, .mark = e->mark});
    return standin_end(rc);
}

int cuMemcpyAsync(cuda_address to, cuda_address from, size_t bytes, struct cuda_stream *handle)
{
    int rc = standin_begin(STANDIN_cuMemcpyAsync);
    if (rc)
        return rc;
    struct cuda_stream *s = stream_of(handle, &rc);
    if (!s)
        return standin_end(rc);
    struct operation o = {.bytes = bytes};
    o.to = standin_resolve(to, bytes, &o.blocks[0]);
    o.from = standin_resolve(from, bytes, &o.blocks[1]);
    if (!o.to || !o.from)
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    enqueue(s, &o);
    return standin_end(CUDA_SUCCESS);
}

/* Has ended when it returns, whatever comes of it. */
int cuMemcpyDtoH_v2(void *to, cuda_address from, size_t bytes)
{
    int rc = standin_begin(STANDIN_cuMemcpyDtoH_v2);
    if (rc)
        return rc;
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
    struct cuda_stream *s = stream_of(handle, &rc);
    if (!s)
        return standin_end(rc);
    struct operation o = {.bytes = bytes, .value = value};
    o.to = standin_resolve(to, bytes, &o.blocks[0]);
    if (!o.to || !o.blocks[0])
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    enqueue(s, &o);
    return standin_end(CUDA_SUCCESS);
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
    struct cuda_stream *s = stream_of(handle, &rc);
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
    rc = event_check(e);
    if (!rc && e->stream)
        run_until(e->stream, e->mark);
    return standin_end(rc);
}
