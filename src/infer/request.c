#include "infer/request.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/slab.h"
#include "base/strbuf.h"
#include "infer/request_text.h"
#include "infer/response.h"
#include "infer/state.h"
#include "infer/stats.h"
#include "infer/trace.h"
#include "model/config.h"
#include "os/mutex.h"
#include "os/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_MAGIC 0x52455153u
/* The struct and the first memory of its arena; enough for a small request. */
#define REQUEST_BYTES (3072 - SLAB_HEAD)
#define KEPT_IN_ARENA ((size_t)16 << 10) /* larger data get a warm buffer */

static const struct slab slab = {
    .kind = SLAB_REQUEST, .object_bytes = REQUEST_BYTES, .tokens = true};

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

void request_account(struct request *r, struct budget_account *account)
{
    arena_account(&r->arena, account, REQUEST_BYTES + RESPONSE_OWN_BYTES);
}

/* Makes room for one more item in an array of the arena. The room doubles; the old array stays
 * in the arena. */
static void *request_grow(struct arena *a, void *items, uint32_t count, uint32_t *cap,
                          size_t item_bytes)
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

uint64_t request_input_bytes(const struct request *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->input_count; i++)
        bytes += r->inputs[i].byte_size;
    return bytes;
}

struct tensor_input *request_add_input(struct request *r, const char *name, size_t name_len,
                                       enum datatype datatype, const int64_t *shape, uint32_t rank,
                                       const struct tensor_piece *pieces, uint32_t piece_count)
{
    if (r->input_count == REQUEST_MAX_TENSORS)
        return NULL;
    r->inputs =
        request_grow(&r->arena, r->inputs, r->input_count, &r->input_cap, sizeof(*r->inputs));
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

void request_add_policy(struct tensor_input *in, const char *name,
                        const struct tensor_piece *pieces, uint32_t piece_count)
{
    struct arena *arena = &in->request->arena;
    struct tensor_policy *p = arena_zalloc(arena, sizeof(*p));
    struct tensor_piece *copy = arena_alloc(arena, (piece_count + 1u) * sizeof(*copy));
    for (uint32_t i = 0; i < piece_count; i++) {
        copy[i] = pieces[i];
        p->byte_size += pieces[i].size;
    }
    p->name = arena_strndup(arena, name, strlen(name));
    p->pieces = copy;
    p->piece_count = piece_count;
    struct tensor_policy **last = &in->policies;
    while (*last)
        last = &(*last)->next;
    *last = p;
}

bool request_add_output(struct request *r, const char *name, size_t name_len)
{
    if (r->output_count == REQUEST_MAX_TENSORS)
        return false;
    r->outputs =
        request_grow(&r->arena, r->outputs, r->output_count, &r->output_cap, sizeof(*r->outputs));
    r->outputs[r->output_count++] = arena_strndup(&r->arena, name, name_len);
    return true;
}

void request_place_output(struct request *r, const char *output, const char *region,
                          const struct tensor_piece *memory)
{
    struct request_place *p = arena_alloc(&r->arena, sizeof(*p));
    *p = (struct request_place){
        .next = r->places, .output = output, .region = region, .memory = *memory};
    r->places = p;
}

const struct request_place *request_place_of(const struct request *r, const char *output)
{
    const struct request_place *p = r->places;
    while (p && strcmp(p->output, output) != 0)
        p = p->next;
    return p;
}

static void request_drop_kept(void *buf)
{
    buf_unref(buf);
}

struct err *request_keep(struct request *r, size_t n, void **ret)
{
    if (n <= KEPT_IN_ARENA) {
        *ret = arena_try_alloc(&r->arena, n, 64);
        return *ret ? NULL
                    : err_busy("no room for %zu bytes of an input; try again later, or raise "
                               "--memory-budget",
                               n);
    }
    struct buf *buf;
    struct err *e = pool_buf(n, &buf);
    if (e)
        return e;
    arena_on_end(&r->arena, request_drop_kept, buf);
    *ret = buf->data;
    return NULL;
}

struct err *request_verror(const char *id, const char *fmt, va_list args)
{
    struct err *e = err_vnew(STATUS_INVALID_ARG, fmt, args);
    struct err *full = err_new(STATUS_INVALID_ARG, "[request id: %s] %s", *id ? id : "<id_unknown>",
                               err_message(e));
    err_free(e);
    return full;
}

struct err *request_error(const struct request *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct err *e = request_verror(r->id, fmt, args);
    va_end(args);
    return e;
}

struct request *request_ref(struct request *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void *request_handle(const struct request *r)
{
    return token_make(slab_token(r), TOKEN_REQUEST, 0);
}

struct request *request_from(const void *handle)
{
    return token_find(handle, TOKEN_REQUEST, NULL);
}

struct request *request_take(const void *handle)
{
    return token_take(handle, TOKEN_REQUEST);
}

void *request_input_handle(const struct tensor_input *in)
{
    return token_make(slab_token(in->request), TOKEN_INPUT, (uint32_t)(in - in->request->inputs));
}

struct tensor_input *request_input_from(const void *handle)
{
    uint32_t part;
    struct request *r = token_find(handle, TOKEN_INPUT, &part);
    return r && part < r->input_count ? &r->inputs[part] : NULL;
}

/* Sends an error for a backend that forgot the final response. The caller holds a reference. */
static void answer_forgotten(struct request *r)
{
    const char *model = r->config->name;
    LOG_ERROR("backend '%s' of model '%s' broke a rule: it released a request without a final "
              "response; every request needs exactly one",
              r->config->backend, model);
    response_send(response_new(r), RESPONSE_FINAL,
                  err_new(STATUS_INTERNAL,
                          "model '%s' released the request without a final response", model));
}

static bool is_open(const struct request *r)
{
    return r->with_backend && !atomic_load_explicit(&r->final_sent, memory_order_relaxed);
}

static void request_end(struct request *r)
{
    if (is_open(r)) {
        /* for the response of answer_forgotten */
        atomic_store_explicit(&r->refs, 1, memory_order_relaxed);
        answer_forgotten(r);
        request_unref(r);
        return;
    }
    if (r->states) /* the request was never released */
        state_release(r);
    if (r->trace)
        trace_release(r->trace);
    if (r->parent)
        request_unref(r->parent);
    r->target->unpin(r->target);
    arena_fini(&r->arena);
    r->magic = 0;
    slab_free(&slab, r);
}

/* rank LEAF. While sent responses that are not final exist, references are dropped under this
 * lock, one at a time. So exactly one thread sees that only the references of sent responses
 * would be left, and it answers for the backend. The request's slab number chooses the lock. */
static struct mutex last_locks[] = {MUTEX_INIT(MUTEX_RANK_LEAF), MUTEX_INIT(MUTEX_RANK_LEAF),
                                    MUTEX_INIT(MUTEX_RANK_LEAF), MUTEX_INIT(MUTEX_RANK_LEAF),
                                    MUTEX_INIT(MUTEX_RANK_LEAF), MUTEX_INIT(MUTEX_RANK_LEAF),
                                    MUTEX_INIT(MUTEX_RANK_LEAF), MUTEX_INIT(MUTEX_RANK_LEAF)};

/* Drops a reference, unless only references of sent responses would be left. Returns false in
 * that case; the caller then still holds its reference. */
static bool drop_but_last(struct request *r)
{
    struct mutex *lock = &last_locks[slab_token(r) % (sizeof(last_locks) / sizeof(last_locks[0]))];
    mutex_lock(lock);
    unsigned refs = atomic_load_explicit(&r->refs, memory_order_relaxed);
    bool last = refs - 1 <= atomic_load_explicit(&r->sent_refs, memory_order_relaxed);
    if (!last)
        atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel);
    mutex_unlock(lock);
    return !last;
}

void request_unref(struct request *r)
{
    CHECK_MAGIC(r, REQUEST_MAGIC);
    /* Acquire: who sent a response has seen with_backend, which another thread may have set. */
    if (atomic_load_explicit(&r->sent_refs, memory_order_acquire) && is_open(r)) {
        if (drop_but_last(r))
            return;
        answer_forgotten(r);
    }
    /* Acquire and release: the thread that drops the last reference sees what all others did. */
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
        request_end(r);
}

void request_sent(struct request *r)
{
    atomic_fetch_add_explicit(&r->sent_refs, 1, memory_order_release); /* request_unref acquires */
}

void request_sent_unref(struct request *r)
{
    CHECK_MAGIC(r, REQUEST_MAGIC);
    atomic_fetch_sub_explicit(&r->sent_refs, 1, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
        request_end(r);
}

bool request_has_sent(const struct request *r)
{
    return atomic_load_explicit(&r->sent_refs, memory_order_relaxed) > 0;
}

void request_bound(struct request *r)
{
    r->bounded = true;
}

bool request_is_overrun(const struct request *r)
{
    return atomic_load_explicit(&r->overrun, memory_order_relaxed);
}

/* More responses than this that nobody took yet leave a quarter of the budget to others. */
#define BURST 64u

bool request_overruns(struct request *r)
{
    if (!r->bounded)
        return false;
    if (request_is_overrun(r) || atomic_load_explicit(&r->cancelled, memory_order_relaxed))
        return true;
    uint32_t sent = atomic_load_explicit(&r->sent_refs, memory_order_relaxed);
    size_t spare = sent > BURST ? budget_limit() / 4 : 0;
    if (!sent || budget_account_room(r->arena.account, spare))
        return false;
    atomic_store_explicit(&r->overrun, true, memory_order_relaxed);
    atomic_store_explicit(&r->cancelled, true, memory_order_relaxed);
    return true;
}

/* Four times what short responses hold that wait for their turn in the loop, see BACKLOG_MOST: to
 * give way among these would cost each of them several us. */
#define LAG_BYTES ((size_t)2 << 20)

bool request_lags(const struct request *r)
{
    return r->bounded && budget_account_holds(r->arena.account, LAG_BYTES);
}

bool request_is_of_many(const struct request *r)
{
    while ((r = r->parent) != NULL)
        if (r->config->decoupled)
            return true;
    return false;
}

void request_cancel(struct request *r)
{
    atomic_store_explicit(&r->cancelled, true, memory_order_relaxed);
    if (r->target->cancelled)
        r->target->cancelled(r);
}

struct err *request_check_reschedule(const struct request *r)
{
    if (r->target->again)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the "
                   "model is not configured to handle such a flag.");
}

void request_reschedule(struct request *r)
{
    CHECK_MAGIC(r, REQUEST_MAGIC);
    r->lent = false;
    r->target->again(r);
}

void request_release(struct request *r)
{
    CHECK_MAGIC(r, REQUEST_MAGIC);
    if (r->target->ended)
        r->target->ended(r);
    r->input_count = 0;
    if (r->states)
        state_release(r);
    buf_unref(r->body);
    r->body = NULL;
    if (r->trace)
        trace_report(r->trace, TRITONSERVER_TRACE_REQUEST_END, clock_now_ns());
    if (r->released)
        r->released(r, r->owner);
    request_unref(r);
}

static void request_add_spent(_Atomic(uint64_t) *sum, time_ns from, time_ns to)
{
    if (to > from)
        atomic_fetch_add_explicit(sum, to - from, memory_order_relaxed);
}

void request_spend(const struct request *r, const struct stats_compute *c)
{
    struct request_spent *s = r->parent->spent;
    request_add_spent(&s->input_ns, c->start, c->input_end);
    request_add_spent(&s->infer_ns, c->input_end, c->output_start);
    request_add_spent(&s->output_ns, c->output_start, c->end);
}
