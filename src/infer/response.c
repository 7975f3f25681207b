#include "infer/response.h"

#include "base/check.h"
#include "base/slab.h"
#include "gpu/gpu_copy.h"
#include "gpu/gpu_memory.h"
#include "infer/allocator.h"
#include "infer/first_response.h"
#include "infer/on_host.h"
#include "infer/request.h"
#include "infer/trace.h"
#include "model/config.h"
#include "model/shape.h"
#include "os/loop.h"
#include "os/pool.h"

#include <inttypes.h>
#include <string.h>

#define RESPONSE_MAGIC    0x52455350u
#define RESPONSE_IN_ARENA 4096u /* outputs up to this many bytes lie in the arena */

static const struct slab slab = {
    .kind = SLAB_RESPONSE, .object_bytes = RESPONSE_OWN_BYTES, .tokens = true};

static _Thread_local struct response_batch *open_batch;
static _Thread_local time_ns batch_now; /* of the batch that is delivered; 0 = not known */

/* The bytes that the account is charged for a response. The first response costs nothing,
 * because request_account has reserved its memory. */
static size_t own_bytes(struct request *request)
{
    bool first = !atomic_exchange_explicit(&request->response_made, true, memory_order_relaxed);
    return first ? 0 : RESPONSE_OWN_BYTES;
}

static struct response *response_make(struct request *request)
{
    struct response *r = slab_alloc(&slab);
    memset(r, 0, sizeof(*r));
    r->magic = RESPONSE_MAGIC;
    r->request = request_ref(request);
    arena_init(&r->arena, r + 1, RESPONSE_OWN_BYTES - sizeof(*r));
    if (request->arena.account)
        arena_account(&r->arena, request->arena.account, own_bytes(request));
    r->last_output = &r->outputs;
    return r;
}

struct response *response_new(struct request *request)
{
    struct response *r = response_make(request);
    if (request->allocator)
        allocator_start(request);
    return r;
}

void *response_handle(const struct response *r)
{
    return token_make(slab_token(r), TOKEN_RESPONSE, 0);
}

struct response *response_from(const void *handle)
{
    return token_find(handle, TOKEN_RESPONSE, NULL);
}

struct response *response_take(const void *handle)
{
    return token_take(handle, TOKEN_RESPONSE);
}

void *response_output_handle(const struct response *r)
{
    return token_make(slab_token(r), TOKEN_OUTPUT, r->output_count - 1);
}

struct tensor_output *response_output_from(const void *handle, struct response **ret_response)
{
    uint32_t part;
    struct response *r = token_find(handle, TOKEN_OUTPUT, &part);
    if (!r || part >= r->output_count)
        return NULL;
    *ret_response = r;
    if (part + 1 == r->output_count) /* the usual case: the output was added last */
        return LIST_ITEM(r->last_output, struct tensor_output, next);
    struct tensor_output *o = r->outputs;
    while (part--)
        o = o->next;
    return o;
}

void response_free(struct response *r)
{
    if (!r)
        return;
    CHECK_MAGIC(r, RESPONSE_MAGIC);
    for (struct tensor_output *o = r->outputs; o; o = o->next)
        buf_unref(o->buf);
    err_free(r->error);
    if (r->sent)
        request_sent_unref(r->request);
    else
        request_unref(r->request);
    arena_fini(&r->arena);
    r->magic = 0;
    slab_free(&slab, r);
}

/* The shape that the client sees, in the arena: the backend's own, or the configured dims if the
 * configuration reshapes the output. */
static const int64_t *client_shape(struct response *r, const char *name, size_t name_len,
                                   const int64_t *shape, uint32_t *rank)
{
    const struct model_config *cfg = r->request->config;
    int32_t index = config_output(cfg, name, name_len);
    const struct model_io *io =
        index >= 0 && cfg->outputs[index].has_reshape ? &cfg->outputs[index] : NULL;
    uint32_t batched = cfg->max_batch_size > 0;
    if (io && *rank != io->reshape_rank + batched)
        io = NULL; /* the shape does not match the configuration, so it is shown as it is */
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

/* Appends an output. dims lie in the arena. */
static struct tensor_output *append_output(struct response *r, const char *name, size_t name_len,
                                           enum datatype datatype, const int64_t *dims,
                                           uint32_t rank)
{
    struct tensor_output *o = arena_zalloc(&r->arena, sizeof(*o));
    o->name = arena_strndup(&r->arena, name, name_len);
    o->datatype = datatype;
    o->shape = dims;
    o->rank = rank;
    *r->last_output = o;
    r->last_output = &o->next;
    r->output_count++;
    return o;
}

struct tensor_output *response_add_output(struct response *r, const char *name,
                                          enum datatype datatype, const int64_t *shape,
                                          uint32_t rank)
{
    size_t name_len = strlen(name);
    const int64_t *dims = client_shape(r, name, name_len, shape, &rank);
    return append_output(r, name, name_len, datatype, dims, rank);
}

struct tensor_output *response_add_shown_output(struct response *r, const char *name,
                                                size_t name_len, enum datatype datatype,
                                                const void *shape, uint32_t rank)
{
    int64_t *dims = arena_alloc(&r->arena, rank * sizeof(*dims));
    if (rank)
        memcpy(dims, shape, rank * sizeof(*dims));
    return append_output(r, name, name_len, datatype, dims, rank);
}

struct err *response_output_buffer(struct response *r, struct tensor_output *output,
                                   uint64_t byte_size)
{
    if (byte_size <= RESPONSE_IN_ARENA) {
        output->data = arena_try_alloc(&r->arena, byte_size ? byte_size : 1, 64);
        if (!output->data)
            return err_busy("no memory for output '%s'", output->name);
    } else {
        struct err *e = pool_buf(byte_size, &output->buf);
        if (e)
            return err_wrap(e, "output '%s'", output->name);
        output->data = output->buf->data;
    }
    output->byte_size = byte_size;
    return NULL;
}

struct err *response_output_buffer_for_backend(struct response *r, struct tensor_output *output,
                                               uint64_t byte_size)
{
    if (r->request->target->fills_outputs)
        return response_output_buffer(r, output, byte_size);
    if (byte_size > RESPONSE_IN_ARENA) {
        struct err *e = pool_buf_zeroed(byte_size, &output->buf);
        if (e)
            return err_wrap(e, "output '%s'", output->name);
        output->data = output->buf->data;
        output->byte_size = byte_size;
        return NULL;
    }
    struct err *e = response_output_buffer(r, output, byte_size);
    if (!e)
        memset(output->data, 0, byte_size);
    return e;
}

bool response_output_is_given(const struct response *r, const struct tensor_output *output)
{
    return r->request->allocator || request_place_of(r->request, output->name);
}

static void lie_in_place(struct tensor_output *output, const struct request_place *p)
{
    output->data = (void *)(uintptr_t)p->memory.data;
    output->memory = p->memory.memory;
    output->device = p->memory.device;
}

/* Whoever cannot reach the client's memory gets memory of the host: bring_to_places. */
static struct err *put_in_place(struct response *r, struct tensor_output *output,
                                const struct request_place *p, uint64_t byte_size, bool reaches)
{
    if (byte_size > p->memory.size)
        return err_new(STATUS_INTERNAL,
                       "shared memory size specified with the request for output '%s' (%" PRIu64
                       " bytes) should be at least %" PRIu64 " bytes to hold the results",
                       output->name, p->memory.size, byte_size);
    if (!reaches) {
        struct err *e = response_output_buffer_for_backend(r, output, byte_size);
        if (e)
            return e;
    } else {
        lie_in_place(output, p);
    }
    output->byte_size = byte_size;
    output->placed = p;
    return NULL;
}

struct err *response_output_memory(struct response *r, struct tensor_output *output,
                                   uint64_t byte_size)
{
    const struct request_place *p = request_place_of(r->request, output->name);
    if (r->request->allocator)
        return allocator_output(r, output, byte_size, TRITONSERVER_MEMORY_CPU, 0);
    return p ? put_in_place(r, output, p, byte_size, true)
             : response_output_buffer(r, output, byte_size);
}

struct err *response_output_write(struct tensor_output *output, uint64_t offset,
                                  const struct tensor_piece *from)
{
    if (!from->size)
        return NULL;
    struct gpu_copy_place to = {
        .data = (char *)output->data + offset, .memory = output->memory, .device = output->device};
    struct err *e = gpu_copy(to, on_host_place_of(from), from->size);
    return output->placed ? err_wrap(e, "output '%s' in shared memory region '%s'", output->name,
                                     output->placed->region)
                          : err_wrap(e, "output '%s'", output->name);
}

/* Puts outputs where the client wants them that the backend could not put there itself. */
static struct err *bring_to_places(struct response *r)
{
    struct err *e = NULL;
    for (struct tensor_output *o = r->outputs; !e && o; o = o->next) {
        if (!o->placed || o->memory == o->placed->memory.memory)
            continue;
        struct tensor_piece from = {
            .data = o->data, .size = o->byte_size, .memory = o->memory, .device = o->device};
        lie_in_place(o, o->placed);
        e = response_output_write(o, 0, &from);
        buf_unref(o->buf);
        o->buf = NULL;
    }
    return e;
}

/* The output of a step of an ensemble is for the next step, so it may stay on the GPU. Answers of
 * the front ends begin on the host. Cleared like memory of the host. False where there is no room,
 * or the GPU fails: the host has to do. */
static bool stays_on_gpu(struct response *r, struct tensor_output *output, uint64_t byte_size,
                         int64_t device)
{
    if (!r->request->parent || !byte_size)
        return false;
    struct err *e = gpu_memory_buf(device, byte_size, &output->buf);
    if (!e && !r->request->target->fills_outputs)
        e = gpu_copy_zeros(device, output->buf->data, byte_size);
    if (e) {
        buf_unref(output->buf);
        output->buf = NULL;
        err_free(e);
        return false;
    }
    output->data = output->buf->data;
    output->byte_size = byte_size;
    output->memory = BUF_MEMORY_GPU;
    output->device = device;
    return true;
}

struct err *response_output_memory_for_backend(struct response *r, struct tensor_output *output,
                                               uint64_t byte_size, enum buf_memory memory,
                                               int64_t device)
{
    const struct request_place *p = request_place_of(r->request, output->name);
    if (r->request->allocator)
        return allocator_output(r, output, byte_size, (TRITONSERVER_MemoryType)memory, device);
    if (p)
        return put_in_place(r, output, p, byte_size,
                            p->memory.memory != BUF_MEMORY_GPU ||
                                (memory == BUF_MEMORY_GPU && device == p->memory.device));
    if (memory == BUF_MEMORY_GPU && stays_on_gpu(r, output, byte_size, device))
        return NULL;
    return response_output_buffer_for_backend(r, output, byte_size);
}

static void response_hand_over(struct mail *m)
{
    struct response *r = (struct response *)m;
    r->request->respond(r, r->request->owner);
}

/* True if a response may still be sent. Only one caller with RESPONSE_FINAL gets true. */
static bool claim_send(struct request *request, uint32_t flags)
{
    if (flags & RESPONSE_FINAL)
        return !atomic_exchange_explicit(&request->final_sent, true, memory_order_relaxed);
    return !atomic_load_explicit(&request->final_sent, memory_order_relaxed);
}

static void measure_first(struct request *request)
{
    if (!request->gap &&
        !atomic_exchange_explicit(&request->first_measured, true, memory_order_relaxed))
        first_response_record(request->target->first_response, request->times.start,
                              clock_now_ns());
}

bool response_send(struct response *r, uint32_t flags, struct err *error)
{
    CHECK_MAGIC(r, RESPONSE_MAGIC);
    r->flags = flags;
    r->error = error;
    if (!claim_send(r->request, flags)) {
        response_free(r);
        return false;
    }
    if (!(flags & RESPONSE_FINAL) && request_overruns(r->request)) {
        response_free(r);
        loop_give_way();
        return true;
    }
    /* If more responses will follow, keep the request alive until this one was passed on. */
    struct request *more = NULL;
    if (!(flags & RESPONSE_FINAL)) {
        more = request_ref(r->request);
        r->sent = true;
        request_sent(more);
    }
    if (r->request->target->first_response && !r->empty)
        measure_first(r->request);
    r->mail.deliver = response_hand_over;
    r->mail.next = NULL;
    if (r->request->trace)
        trace_outputs(r, TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT);
    if (r->request->places && !r->error)
        r->error = bring_to_places(r);
    if (r->request->hold)
        r->request->hold(r);
    else
        response_pass_on(r);
    if (more) {
        if (more->home)
            loop_wait_for_room(more->home);
        if (request_lags(more))
            loop_give_way();
        request_unref(more);
    }
    return true;
}

/* True if an Execute is under way, and this request was left unanswered by an earlier one. An
 * ensemble's is never executed: if it is not for a client, it belongs to the step that ends it. */
static bool is_late(const struct response_batch *b, const struct request *r)
{
    return b->executed && r->times.executed != b->executed && (r->home || r->times.executed);
}

/* True if a response waits for the end of the batch. Only final ones do: a kept response could
 * be overtaken by one that another thread sends later. Final responses of steps of an ensemble
 * with several responses are not kept: the instance's next execution could produce responses
 * before the end of the batch, and the order would be lost. */
static bool keeps_back(const struct response_batch *b, const struct response *r)
{
    return (r->flags & RESPONSE_FINAL) && (b->all || !request_is_of_many(r->request)) &&
           !(b->clients && r->request->parent) && !is_late(b, r->request);
}

/* Responses of a request of which earlier ones wait go behind those; there may be thousands. */
static bool follows_others(const struct response *r)
{
    return request_has_sent(r->request);
}

static void response_post(struct loop *home, struct mail *first, struct mail *last, bool follow)
{
    if (follow)
        loop_post_many(home, first, last);
    else
        loop_post(home, first, last);
}

bool response_send_flags(struct request *request, uint32_t flags)
{
    struct response *r = response_make(request);
    r->empty = true;
    return response_send(r, flags, NULL);
}

void response_fail(struct request *request, struct err *error)
{
    struct response *r = response_new(request);
    request_release(request);
    response_send(r, RESPONSE_FINAL, error);
}

void response_batch_begin(struct response_batch *b)
{
    *b = (struct response_batch){.outer = open_batch, .posts = open_batch && open_batch->posts};
    open_batch = b;
}

static struct loop *home_of(struct mail *m)
{
    return ((struct response *)m)->request->home;
}

/* Takes the first responses of the list that go the same way to the same loop. Batches come from
 * few loops, so this takes many at once. Whether a response follows others is asked once: they
 * may be gone meanwhile, and then it must not overtake what was posted with it. */
static struct mail *cut_run(struct mail **list, struct mail **ret_last, bool *ret_follow)
{
    struct mail *first = *list;
    struct mail *last = first;
    bool follow = follows_others((struct response *)first);
    while (last->next && home_of(last->next) == home_of(first) &&
           follows_others((struct response *)last->next) == follow)
        last = last->next;
    *list = last->next;
    last->next = NULL;
    *ret_last = last;
    *ret_follow = follow;
    return first;
}

/* Delivers on this thread, which runs the home loop, or if there is no home loop. If earlier
 * responses of the request may still be in the loop's mailbox, the response is posted behind
 * them. */
static void deliver_here(struct mail *m, struct loop *home)
{
    if (home && follows_others((struct response *)m))
        loop_post_many(home, m, m);
    else
        m->deliver(m);
}

/* Delivers responses for this thread's loop, or for no loop, here; posts the others. */
static void deliver_list(struct mail *list, const struct loop *here)
{
    while (list) {
        struct mail *last;
        bool follow;
        struct mail *first = cut_run(&list, &last, &follow);
        struct loop *home = home_of(first);
        if (home && home != here) {
            response_post(home, first, last, follow);
            continue;
        }
        while (first) {
            struct mail *next = first->next;
            deliver_here(first, home);
            first = next;
        }
    }
}

static void response_batch_add(struct response_batch *b, struct mail *m)
{
    *(b->first ? &b->last->next : &b->first) = m;
    b->last = m;
}

/* Delivers what is kept for loops. Callbacks wait for the end, where what they submit is
 * gathered. */
static void response_batch_let_go(struct response_batch *b)
{
    struct response_batch gone = {0};
    struct mail *next = b->first;
    b->first = b->last = NULL;
    while (next) {
        struct mail *m = next;
        next = m->next;
        m->next = NULL;
        response_batch_add(home_of(m) ? &gone : b, m);
    }
    deliver_list(gone.first, NULL);
}

static void response_batch_keep(struct response_batch *b, struct response *r)
{
    response_batch_add(b, &r->mail);
    if (!b->expected || r->request->times.executed != b->executed)
        return;
    bool last = --b->expected == 0;
    if (!r->request->home) {
        if (last)
            response_batch_let_go(b);
        return;
    }
    time_ns now = clock_now_ns();
    if (b->kept_until == TIME_NEVER)
        b->kept_until = now + RESPONSE_KEPT_NS;
    else if (b->kept_until && now >= b->kept_until)
        b->apart = true;
    if (!last && now < b->kept_until)
        return;
    b->kept_until = now + RESPONSE_KEPT_NS;
    if (last && b->before_last)
        b->before_last(b->owner, now);
    response_batch_let_go(b);
}

void response_pass_on(struct response *r)
{
    struct loop *home = r->request->home;
    if (open_batch && keeps_back(open_batch, r)) {
        response_batch_keep(open_batch, r);
    } else if (!home) {
        response_hand_over(&r->mail);
    } else {
        response_post(home, &r->mail, &r->mail, follows_others(r));
    }
}

void response_deliver(struct mail *first)
{
    deliver_list(first, NULL);
}

void response_batch_executes(struct response_batch *b, struct request *const *requests,
                             size_t count, time_ns now)
{
    for (size_t i = 0; i < count; i++)
        requests[i]->times.executed = now;
    b->executed = now;
}

void response_batch_expect(struct response_batch *b, size_t count, bool apart)
{
    b->expected = count;
    b->kept_until = apart ? 0 : TIME_NEVER;
    b->apart = false;
    b->before_last = NULL;
}

void response_batch_end(struct response_batch *b)
{
    time_ns outer_now = batch_now;
    open_batch = b->outer;
    batch_now = b->now;
    deliver_list(b->first, b->posts ? NULL : loop_current());
    batch_now = outer_now;
}

time_ns response_batch_now(void)
{
    return batch_now ? batch_now : clock_now_ns();
}
