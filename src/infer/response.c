#include "infer/response.h"

#include "base/check.h"
#include "base/slab.h"
#include "infer/allocator.h"
#include "infer/request.h"
#include "infer/trace.h"
#include "model/config.h"
#include "model/shape.h"
#include "os/loop.h"
#include "os/pool.h"

#include <string.h>

#define RESPONSE_MAGIC    0x52455350u
#define RESPONSE_BYTES    2048  /* the struct and the first memory of its arena */
#define RESPONSE_IN_ARENA 4096u /* outputs up to this size lie in the arena */

static const struct slab slab = {.index = 1, .object_bytes = RESPONSE_BYTES};

static _Thread_local struct response_batch *open_batch;

static struct response *make(struct request *request)
{
    struct response *r = slab_alloc(&slab);
    memset(r, 0, sizeof(*r));
    r->magic = RESPONSE_MAGIC;
    r->request = request_ref(request);
    arena_init(&r->arena, r + 1, RESPONSE_BYTES - sizeof(*r));
    r->last_output = &r->outputs;
    return r;
}

struct response *response_new(struct request *request)
{
    struct response *r = make(request);
    if (request->allocator)
        allocator_start(request);
    return r;
}

struct response *response_from(const void *handle)
{
    struct response *r = (struct response *)(uintptr_t)handle;
    return r && r->magic == RESPONSE_MAGIC ? r : NULL;
}

void response_free(struct response *r)
{
    if (!r)
        return;
    CHECK_MAGIC(r, RESPONSE_MAGIC);
    for (struct tensor_output *o = r->outputs; o; o = o->next)
        buf_unref(o->buf);
    err_free(r->error);
    request_unref(r->request);
    arena_fini(&r->arena);
    r->magic = 0;
    slab_free(&slab, r);
}

/* The shape that the client sees: the backend's own, or the configured dims where the output is reshaped. In the arena. */
static const int64_t *client_shape(struct response *r, const char *name, const int64_t *shape,
                                   uint32_t *rank)
{
    const struct model_config *cfg = r->request->config;
    int32_t index = config_output(cfg, name, strlen(name));
    const struct model_io *io =
        index >= 0 && cfg->outputs[index].has_reshape ? &cfg->outputs[index] : NULL;
    uint32_t batched = cfg->max_batch_size > 0;
    if (io && *rank != io->reshape_rank + batched)
        io = NULL; /* not what the configuration says: show it as it is */
    int64_t *dims = arena_alloc(&r->arena, (io ? io->rank + batched : *rank) * sizeof(*dims));
    if (!io) {
        if (*rank)
            memcpy(dims, shape, *rank * sizeof(*dims));
        return dims;
    }
    if (batched)
        dims[0] = shape[0];
    shape_reshape(io->reshape, io->reshape_rank, shape + batched, io->dims, io->rank,
                  dims + batched);
    *rank = io->rank + batched;
    return dims;
}

struct tensor_output *response_add_output(struct response *r, const char *name,
                                          enum datatype datatype, const int64_t *shape,
                                          uint32_t rank)
{
    struct tensor_output *o = arena_zalloc(&r->arena, sizeof(*o));
    const int64_t *dims = client_shape(r, name, shape, &rank);
    o->name = arena_strndup(&r->arena, name, strlen(name));
    o->datatype = datatype;
    o->shape = dims;
    o->rank = rank;
    *r->last_output = o;
    r->last_output = &o->next;
    r->output_count++;
    return o;
}

struct err *response_output_buffer(struct response *r, struct tensor_output *output,
                                   uint64_t byte_size)
{
    if (byte_size <= RESPONSE_IN_ARENA) {
        output->data = arena_try_alloc(&r->arena, byte_size ? byte_size : 1, 64);
        if (!output->data)
            return err_new(STATUS_UNAVAILABLE, "no memory for output '%s'", output->name);
    } else {
        struct err *e = pool_buf(byte_size, &output->buf);
        if (e)
            return err_wrap(e, "output '%s'", output->name);
        output->data = output->buf->data;
    }
    output->byte_size = byte_size;
    return NULL;
}

static void deliver(struct mail *m)
{
    struct response *r = (struct response *)m;
    r->request->respond(r, r->request->owner);
}

void response_send(struct response *r, uint32_t flags, struct err *error)
{
    CHECK_MAGIC(r, RESPONSE_MAGIC);
    r->flags = flags;
    r->error = error;
    r->mail.deliver = deliver;
    r->mail.next = NULL;
    if (flags & RESPONSE_FINAL)
        r->request->final_sent = true;
    if (r->request->trace)
        trace_outputs(r, TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT);
    if (r->request->hold) {
        r->request->hold(r);
        return;
    }
    struct response_batch *b = open_batch;
    struct loop *home = r->request->home;
    if (b) {
        *(b->first ? &b->last->next : &b->first) = &r->mail;
        b->last = &r->mail;
    } else if (!home) {
        deliver(&r->mail);
    } else {
        loop_post(home, &r->mail, &r->mail);
    }
}

void response_send_flags(struct request *request, uint32_t flags)
{
    struct response *r = make(request);
    r->empty = true;
    response_send(r, flags, NULL);
}

void response_fail(struct request *request, struct err *error)
{
    struct response *r = response_new(request);
    request_release(request);
    response_send(r, RESPONSE_FINAL, error);
}

void response_batch_begin(struct response_batch *b)
{
    *b = (struct response_batch){.outer = open_batch};
    open_batch = b;
}

static struct loop *home_of(struct mail *m)
{
    return ((struct response *)m)->request->home;
}

/* Takes the run of neighbours that go to one loop off the front of the list; batches come from few loops, so runs are long. */
static struct mail *cut_run(struct mail **list, struct mail **ret_last)
{
    struct mail *first = *list;
    struct mail *last = first;
    while (last->next && home_of(last->next) == home_of(first))
        last = last->next;
    *list = last->next;
    last->next = NULL;
    *ret_last = last;
    return first;
}

/* Runs what goes to the loop of this very thread, or to no loop, here; posts the rest. */
static void deliver_list(struct mail *list, const struct loop *here)
{
    while (list) {
        struct mail *last;
        struct mail *first = cut_run(&list, &last);
        struct loop *home = home_of(first);
        if (home && home != here) {
            loop_post(home, first, last);
            continue;
        }
        while (first) {
            struct mail *next = first->next;
            first->deliver(first);
            first = next;
        }
    }
}

void response_deliver(struct mail *first)
{
    deliver_list(first, NULL);
}

void response_batch_end(struct response_batch *b)
{
    open_batch = b->outer;
    deliver_list(b->first, loop_current());
}
