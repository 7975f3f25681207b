#include "infer/request.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/slab.h"
#include "base/strbuf.h"
#include "infer/response.h"
#include "infer/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_MAGIC 0x52455153u
#define REQUEST_BYTES \
    3072 /* the struct and the first memory of its arena: a small request needs no more */

static const struct slab slab = {.index = 0, .object_bytes = REQUEST_BYTES};

struct request *request_new(struct request_target *target, struct loop *home,
                            request_respond_fn respond, void *owner)
{
    struct request *r = slab_alloc(&slab);
    memset(r, 0, sizeof(*r));
    r->magic = REQUEST_MAGIC;
    r->batch_size = 1;
    arena_init(&r->arena, r + 1, REQUEST_BYTES - sizeof(*r));
    r->target = target;
    r->config = target->config;
    r->id = "";
    list_init(&r->queue_node);
    r->queue_deadline = TIME_NEVER;
    r->home = home;
    r->respond = respond;
    r->owner = owner;
    atomic_init(&r->refs, 1);
    atomic_init(&r->cancelled, false);
    return r;
}

/* Room for one more in an array of the arena: doubles, the old one stays in the arena. */
static void *grow(struct arena *a, void *items, uint32_t count, uint32_t *cap, size_t item_bytes)
{
    if (count < *cap)
        return items;
    uint32_t bigger = *cap ? *cap * 2 : 4;
    void *copy = arena_alloc(a, bigger * item_bytes);
    if (count)
        memcpy(copy, items, count * item_bytes);
    *cap = bigger;
    return copy;
}

struct tensor_input *request_add_input(struct request *r, const char *name, size_t name_len,
                                       enum datatype datatype, const int64_t *shape, uint32_t rank,
                                       const struct tensor_piece *pieces, uint32_t piece_count)
{
    if (r->input_count == REQUEST_MAX_TENSORS)
        return NULL;
    r->inputs = grow(&r->arena, r->inputs, r->input_count, &r->input_cap, sizeof(*r->inputs));
    struct tensor_input *in = &r->inputs[r->input_count++];
    int64_t *dims = arena_alloc(&r->arena, rank * sizeof(*dims));
    struct tensor_piece *copy = arena_alloc(&r->arena, piece_count * sizeof(*copy));
    if (rank)
        memcpy(dims, shape, rank * sizeof(*dims));
    *in = (struct tensor_input){
        .name = arena_strndup(&r->arena, name, name_len),
        .datatype = datatype,
        .shape = dims,
        .rank = rank,
        .pieces = copy,
        .piece_count = piece_count,
    };
    in->request = r;
    for (uint32_t i = 0; i < piece_count; i++) {
        copy[i] = pieces[i];
        in->byte_size += pieces[i].size;
    }
    return in;
}

bool request_add_output(struct request *r, const char *name, size_t name_len)
{
    if (r->output_count == REQUEST_MAX_TENSORS)
        return false;
    r->outputs = grow(&r->arena, r->outputs, r->output_count, &r->output_cap, sizeof(*r->outputs));
    r->outputs[r->output_count++] = arena_strndup(&r->arena, name, name_len);
    return true;
}

struct err *request_error(const struct request *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct err *e = err_vnew(STATUS_INVALID_ARG, fmt, args);
    va_end(args);
    struct err *full = err_new(STATUS_INVALID_ARG, "[request id: %s] %s",
                               *r->id ? r->id : "<id_unknown>", err_message(e));
    err_free(e);
    return full;
}

struct request *request_ref(struct request *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void request_unref(struct request *r)
{
    CHECK_MAGIC(r, REQUEST_MAGIC);
    /* Acquire and release: the last one sees what every other holder did. */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (r->trace)
        trace_release(r->trace);
    r->target->unpin(r->target);
    arena_fini(&r->arena);
    r->magic = 0;
    slab_free(&slab, r);
}

void request_release(struct request *r)
{
    CHECK_MAGIC(r, REQUEST_MAGIC);
    r->input_count = 0;
    buf_unref(r->body);
    r->body = NULL;
    if (r->released)
        r->released(r, r->owner);
    request_unref(r);
}
