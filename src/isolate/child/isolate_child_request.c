/* Requests in the child process: makes them from the parent's orders, and reports to the parent
 * what happens to them. */
#include "base/mem.h"
#include "infer/response.h"
#include "infer/response_stats.h"
#include "infer/stats.h"
#include "model/config.h"
#include "plugin/instance.h"
#include "isolate/child/isolate_child_priv.h"
#include "isolate/wire/isolate_param.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

static void isolate_child_request_respond(struct response *r, void *owner)
{
    struct isolate_child_request *cr = owner;
    struct strbuf local = STRBUF_INIT;
    size_t mark;
    bool decoupled = cr->target.config->decoupled;
    if (r->empty) {
        struct strbuf *sb = isolate_child_lane_say(&local, cr, RECORD_FLAGS, &mark);
        isolate_wire_put(sb, r->flags);
        isolate_child_lane_said(cr->child, sb, mark, decoupled);
        response_free(r);
        return;
    }
    struct strbuf *sb = isolate_child_lane_say(&local, cr, RECORD_RESPONSE, &mark);
    isolate_wire_put(sb, r->flags);
    isolate_wire_put(sb, r->error ? (uint64_t)isolate_wire_code(r->error) + 1 : 0);
    if (r->error)
        isolate_wire_put_text(sb, err_message(r->error));
    isolate_param_put(sb, &r->params);
    isolate_wire_put(sb, r->output_count);
    for (const struct tensor_output *o = r->outputs; o; o = o->next) {
        isolate_wire_put_text(sb, o->name);
        isolate_wire_put(sb, o->datatype);
        isolate_wire_put(sb, o->rank);
        for (uint32_t i = 0; i < o->rank; i++)
            isolate_wire_put(sb, (uint64_t)o->shape[i]);
        isolate_child_outputs_put(&cr->child->outputs, sb, o);
    }
    isolate_child_lane_said(cr->child, sb, mark, decoupled);
    response_free(r);
}

static void say_plain(struct isolate_child_request *cr, enum isolate_record kind)
{
    struct strbuf local = STRBUF_INIT;
    size_t mark;
    struct strbuf *sb = isolate_child_lane_say(&local, cr, kind, &mark);
    isolate_child_lane_said(cr->child, sb, mark, false);
}

static void isolate_child_request_released(struct request *r, void *owner)
{
    (void)r;
    say_plain(owner, RECORD_RELEASE);
}

/* The last reference to the request was dropped. */
static void gone(struct request_target *target)
{
    struct isolate_child_request *cr = (struct isolate_child_request *)target;
    struct isolate_child *child = cr->child;
    mutex_lock(&child->lock);
    child->requests[(uint32_t)cr->id] = NULL;
    mutex_unlock(&child->lock);
    say_plain(cr, RECORD_GONE);
    mem_free(cr);
}

/* The backend gives the request back to be executed again, which the parent arranges. */
static void isolate_child_request_again(struct request *r)
{
    struct isolate_child_request *cr = (struct isolate_child_request *)r->target;
    say_plain(cr, RECORD_AGAIN);
    r->with_backend = false; /* so that no answer counts as missing */
    request_unref(r);
}

/* Adds the request to the table; from here on it can be cancelled. */
static void enlist(struct isolate_child *child, struct isolate_child_request *cr)
{
    uint32_t index = (uint32_t)cr->id;
    mutex_lock(&child->lock);
    if (index >= child->request_cap) {
        uint32_t cap = index + 64;
        child->requests =
            mem_realloc(child->requests, cap * sizeof(struct isolate_child_request *));
        memset(child->requests + child->request_cap, 0,
               (cap - child->request_cap) * sizeof(struct isolate_child_request *));
        child->request_cap = cap;
    }
    child->requests[index] = cr;
    mutex_unlock(&child->lock);
}

void isolate_child_request_cancel(struct isolate_child *child, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    mutex_lock(&child->lock);
    struct isolate_child_request *cr = index < child->request_cap ? child->requests[index] : NULL;
    if (cr && cr->id == id)
        atomic_store_explicit(&cr->request->cancelled, true, memory_order_relaxed);
    mutex_unlock(&child->lock);
}

/* The bytes of an input. Bytes in shared memory stay there; bytes in the message are copied. */
static struct tensor_piece read_piece(struct isolate_child *child, struct isolate_wire *w,
                                      struct request *r, uint64_t place)
{
    struct tensor_piece piece = {.memory = BUF_MEMORY_CPU};
    if (place == PLACE_SHARED) {
        uint64_t offset = isolate_wire_get_most(w, child->shared_bytes);
        piece.size = isolate_wire_get_most(w, child->shared_bytes - offset);
        piece.data = child->in + offset;
        return piece;
    }
    const void *bytes = isolate_wire_get_room(w, &piece.size);
    void *copy = w->bad ? NULL : arena_try_alloc(&r->arena, piece.size ? piece.size : 1, 64);
    w->bad |= !copy;
    if (copy && piece.size)
        memcpy(copy, bytes, piece.size);
    piece.data = copy;
    return piece;
}

static void read_input(struct isolate_child *child, struct isolate_wire *w, struct request *r)
{
    const char *name = isolate_wire_get_text(w);
    enum datatype datatype = (enum datatype)isolate_wire_get_most(w, DATATYPE_COUNT - 1);
    uint64_t shape_bytes;
    const void *shape = isolate_wire_get_bytes(w, &shape_bytes);
    bool ragged = isolate_wire_get(w) != 0;
    uint64_t place = isolate_wire_get_most(w, PLACE_SHARED);
    if (w->bad)
        return;
    int64_t *dims = arena_alloc(&r->arena, shape_bytes + 1);
    if (shape_bytes)
        memcpy(dims, shape, shape_bytes);
    struct tensor_piece piece = {0};
    if (place != PLACE_NONE)
        piece = read_piece(child, w, r, place);
    struct tensor_input *in = w->bad ? NULL
                                     : request_add_input(r, name, strlen(name), datatype, dims,
                                                         (uint32_t)(shape_bytes / sizeof(*dims)),
                                                         &piece, place != PLACE_NONE);
    if (!in) {
        w->bad = true;
        return;
    }
    in->model_shape = in->shape;
    in->model_rank = in->rank;
    in->ragged_ok = ragged;
}

static void isolate_child_request_read_fields(struct isolate_child *child, struct isolate_wire *w,
                                              struct request *r)
{
    const char *id = isolate_wire_get_text(w);
    r->id = arena_strndup(&r->arena, id, strlen(id));
    r->batch_size = (uint32_t)isolate_wire_get(w);
    r->flags = (uint32_t)isolate_wire_get(w);
    r->correlation_id = isolate_wire_get(w);
    const char *correlation = isolate_wire_get_text_or_null(w);
    if (correlation)
        r->correlation_string = arena_strndup(&r->arena, correlation, strlen(correlation));
    r->priority = isolate_wire_get(w);
    r->timeout_us = isolate_wire_get(w);
    struct err *no_room = isolate_param_get(w, &r->params, &r->arena);
    w->bad |= no_room != NULL;
    err_free(no_room);
    uint64_t inputs = isolate_wire_get_most(w, REQUEST_MAX_TENSORS);
    for (uint64_t i = 0; i < inputs && !w->bad; i++)
        read_input(child, w, r);
    uint64_t outputs = isolate_wire_get_most(w, REQUEST_MAX_TENSORS);
    for (uint64_t i = 0; i < outputs && !w->bad; i++) {
        const char *name = isolate_wire_get_text(w);
        w->bad |= !request_add_output(r, name, strlen(name));
    }
    r->times.start = r->times.queue_start = clock_now_ns();
}

struct request *isolate_child_request_read(struct isolate_child *child, struct isolate_wire *w)
{
    struct isolate_child_request *cr = MEM_NEW(struct isolate_child_request);
    cr->target = (struct request_target){
        .config = child->published, .unpin = gone, .fills_outputs = child->backend->fills_outputs};
    const struct Inference__ModelConfig *proto = child->published->proto;
    if (proto->sequence_batching && proto->sequence_batching->iterative_sequence)
        cr->target.again = isolate_child_request_again;
    cr->child = child;
    cr->id = isolate_wire_get(w);
    atomic_init(&cr->place, 0);
    if (w->bad || (uint32_t)cr->id >> 24) {
        w->bad = true;
        mem_free(cr);
        return NULL;
    }
    struct request *r = request_new(&cr->target, NULL, isolate_child_request_respond, cr);
    cr->request = r;
    enlist(child, cr);
    r->released = isolate_child_request_released;
    r->allocator = &child->outputs.allocator;
    isolate_child_request_read_fields(child, w, r);
    return r;
}

static void put_compute(struct strbuf *sb, const struct stats_compute *c)
{
    isolate_wire_put(sb, c->start);
    isolate_wire_put(sb, c->input_end);
    isolate_wire_put(sb, c->output_start);
    isolate_wire_put(sb, c->end);
}

static void report_request(struct plugin_instance *i, const struct request *r, bool success,
                           const struct stats_compute *c)
{
    (void)i;
    struct isolate_child_request *cr = (struct isolate_child_request *)r->target;
    struct strbuf local = STRBUF_INIT;
    size_t mark;
    struct strbuf *sb = isolate_child_lane_say(&local, cr, RECORD_STATISTICS, &mark);
    isolate_wire_put(sb, success);
    put_compute(sb, c);
    isolate_child_lane_said(cr->child, sb, mark, false);
}

static void report_batch(struct plugin_instance *i, uint64_t rows, const struct stats_compute *c)
{
    struct isolate_child *child = i->reports_to;
    struct strbuf local = STRBUF_INIT;
    size_t mark;
    struct strbuf *sb = isolate_child_lane_say(&local, NULL, RECORD_BATCH, &mark);
    isolate_wire_put(sb, rows < UINT32_MAX ? rows : UINT32_MAX);
    put_compute(sb, c);
    isolate_child_lane_said(child, sb, mark, false);
}

static void report_response(struct plugin_instance *i, const struct request *r, uint32_t index,
                            int outcome, const struct response_stats_times *t)
{
    (void)i;
    struct isolate_child_request *cr = (struct isolate_child_request *)r->target;
    struct strbuf local = STRBUF_INIT;
    size_t mark;
    struct strbuf *sb = isolate_child_lane_say(&local, cr, RECORD_RESPONSE_STATISTICS, &mark);
    isolate_wire_put(sb, index);
    isolate_wire_put(sb, (uint64_t)outcome);
    isolate_wire_put(sb, t->start);
    isolate_wire_put(sb, t->output_start);
    isolate_wire_put(sb, t->end);
    isolate_child_lane_said(cr->child, sb, mark, false);
}

const struct instance_reports isolate_child_request_reports = {
    .request = report_request,
    .batch = report_batch,
    .response = report_response,
};
