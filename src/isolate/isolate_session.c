#include "isolate/isolate_session.h"

#include "base/budget.h"
#include "base/buf.h"
#include "base/mem.h"
#include "os/process/confine.h"
#include "os/packet.h"
#include "os/shm.h"
#include "isolate/isolate_environment.h"
#include "isolate/isolate_flight.h"
#include "isolate/wire/isolate_pool.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_records.h"

#include <inttypes.h>
#include <string.h>

/* of shared memory if nothing is configured; the budget also limits it */
#define MOST_BYTES ((uint64_t)8 << 30)

/* An output of the child that a response of the server uses. */
struct lent {
    struct buf buf; /* first: freed through it */
    struct isolate_session *session;
    uint64_t slot;
};

static uint64_t isolate_session_limit(const struct isolate_settings *settings)
{
    uint64_t limit = settings->memory_bytes;
    if (!limit)
        limit = budget_limit() < MOST_BYTES ? budget_limit() : MOST_BYTES;
    return (limit + ISOLATE_POOL_PAGE - 1) & ~(uint64_t)(ISOLATE_POOL_PAGE - 1);
}

static void isolate_session_forget(void *owner, uint64_t offset, uint64_t bytes)
{
    const struct isolate_session *s = owner;
    shm_forget(s->in_fd, offset, bytes);
}

static struct err *make_memory(struct isolate_session *s, uint64_t limit)
{
    /* places are powers of two, so the pool needs more than the limit */
    s->shared_bytes = 2 * limit;
    struct err *e = shm_create("nereid-inputs", s->shared_bytes, &s->in_fd);
    if (!e)
        e = shm_create("nereid-outputs", ISOLATE_SLOTS + s->shared_bytes, &s->out_fd);
    if (e)
        return e;
    s->in = shm_map(s->in_fd, s->shared_bytes);
    s->out = shm_map(s->out_fd, ISOLATE_SLOTS + s->shared_bytes);
    if (!s->in || !s->out)
        return err_new(STATUS_UNAVAILABLE, "no room to map %zu bytes of shared memory",
                       s->shared_bytes);
    s->pool = isolate_pool_new(s->shared_bytes, limit, isolate_session_forget, s);
    return NULL;
}

static struct isolate_session *isolate_session_make(const char *model)
{
    struct isolate_session *s = MEM_NEW(struct isolate_session);
    atomic_init(&s->refs, 1);
    s->model = model;
    s->process.pidfd = -1;
    s->control_fd = s->log_fd = s->in_fd = s->out_fd = s->setup.fd = -1;
    mutex_init(&s->lanes_lock, MUTEX_RANK_LEAF);
    list_init(&s->lanes);
    list_init(&s->setup.node);
    isolate_quota_init(&s->quota);
    isolate_frame_init(&s->setup.frame, &s->quota);
    isolate_flight_init(&s->flights);
    atomic_init(&s->heard, clock_now_ns());
    return s;
}

/* Sends the first message: descriptors, the size of the memory, and what the process may do. */
static struct err *greet(struct isolate_session *s, const struct isolate_settings *settings,
                         uint64_t limit, const int theirs[])
{
    struct strbuf sb = STRBUF_INIT;
    uint32_t user = 0;
    uint32_t group = 0;
    if (settings->user) {
        struct err *e = confine_find_user(settings->user, &user, &group);
        if (e)
            return err_wrap(e, "%s: parameter 'ISOLATION_USER'", s->model);
    }
    isolate_wire_put(&sb, ORDER_START);
    isolate_wire_put(&sb, s->shared_bytes);
    isolate_wire_put(&sb, limit);
    isolate_wire_put(&sb, settings->user != NULL);
    isolate_wire_put(&sb, user);
    isolate_wire_put(&sb, group);
    isolate_wire_put(&sb, settings->deny);
    isolate_wire_put_text(&sb, strbuf_str(&settings->files));
    bool sent = isolate_frame_send(s->control_fd, sb.data, sb.len, theirs, ISOLATE_FD_COUNT);
    strbuf_fini(&sb);
    return sent ? NULL : err_new(STATUS_INTERNAL, "the process ended at once");
}

static struct err *start_program(const char *program, const char *model,
                                 const struct isolate_settings *settings, int control_fd,
                                 struct spawn *ret)
{
    const char *argv[] = {"nereid", ISOLATE_ARGUMENT, model, NULL};
    const char **env = isolate_environment_new(spawn_environment(), settings->environment);
    struct err *e = spawn_start(program, argv, env, control_fd, ret);
    mem_free(env);
    return e;
}

struct err *isolate_session_new(const char *model, const char *program,
                                const struct isolate_settings *settings,
                                struct isolate_session **ret)
{
    struct isolate_session *s = isolate_session_make(model);
    int control[2] = {-1, -1};
    int log[2] = {-1, -1};
    int setup[2] = {-1, -1};
    uint64_t limit = isolate_session_limit(settings);
    struct err *e = make_memory(s, limit);
    if (!e)
        e = packet_pair(control);
    if (!e)
        e = packet_pair(log);
    if (!e)
        e = packet_pair(setup);
    s->control_fd = control[0];
    s->log_fd = log[0];
    s->setup.fd = setup[0];
    if (!e)
        e = start_program(program, model, settings, control[1], &s->process);
    int theirs[ISOLATE_FD_COUNT] = {log[1], s->in_fd, s->out_fd, setup[1]};
    if (!e)
        e = greet(s, settings, limit, theirs);
    packet_close(control[1]);
    packet_close(log[1]);
    packet_close(setup[1]);
    if (e && s->process.pid) {
        spawn_kill(&s->process);
        spawn_reap(&s->process);
    }
    if (e)
        isolate_session_unref(s);
    else
        *ret = s;
    return e;
}

struct isolate_session *isolate_session_ref(struct isolate_session *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

static void lane_free(struct isolate_lane *lane)
{
    packet_close(lane->fd);
    isolate_frame_fini(&lane->frame);
    strbuf_fini(&lane->out);
}

void isolate_session_unref(struct isolate_session *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct list *node;
    while ((node = list_pop(&s->lanes))) {
        struct isolate_lane *lane = LIST_ITEM(node, struct isolate_lane, node);
        lane_free(lane);
        mem_free(lane);
    }
    lane_free(&s->setup);
    packet_close(s->control_fd);
    packet_close(s->log_fd);
    isolate_pool_free(s->pool);
    shm_unmap(s->in, s->shared_bytes);
    shm_unmap(s->out, ISOLATE_SLOTS + s->shared_bytes);
    shm_close(s->in_fd);
    shm_close(s->out_fd);
    isolate_flight_fini(&s->flights);
    isolate_quota_fini(&s->quota);
    mutex_fini(&s->lanes_lock);
    mem_free(s);
}

void isolate_session_end(struct isolate_session *s)
{
    packet_end(s->control_fd);
    packet_end(s->setup.fd);
    mutex_lock(&s->lanes_lock);
    LIST_EACH (node, &s->lanes)
        packet_end(LIST_ITEM(node, struct isolate_lane, node)->fd);
    mutex_unlock(&s->lanes_lock);
}

/* Sends a lane's socket to the child. Returns false if the process has ended. */
static bool isolate_session_hand_over(struct isolate_session *s, int fd,
                                      struct isolate_reply *reply)
{
    isolate_session_begin(&s->setup, ORDER_LANE);
    bool sent = isolate_frame_send(s->setup.fd, s->setup.out.data, s->setup.out.len, &fd, 1);
    s->setup.out.len = 0;
    if (!sent)
        isolate_session_end(s);
    return sent && isolate_session_order(s, &s->setup, reply);
}

struct err *isolate_session_add_lane(struct isolate_session *s, struct isolate_lane **ret)
{
    int pair[2];
    struct isolate_reply reply = {0};
    *ret = NULL;
    struct err *e = packet_pair(pair);
    if (e)
        return e;
    bool ok = isolate_session_hand_over(s, pair[1], &reply) && !reply.err;
    packet_close(pair[1]);
    if (!ok) {
        packet_close(pair[0]);
        return reply.err;
    }
    struct isolate_lane *lane = MEM_NEW(struct isolate_lane);
    lane->fd = pair[0];
    isolate_frame_init(&lane->frame, &s->quota);
    mutex_lock(&s->lanes_lock);
    list_append(&s->lanes, &lane->node);
    mutex_unlock(&s->lanes_lock);
    *ret = lane;
    return NULL;
}

void isolate_session_drop_lane(struct isolate_session *s, struct isolate_lane *lane)
{
    mutex_lock(&s->lanes_lock);
    list_remove(&lane->node);
    mutex_unlock(&s->lanes_lock);
    lane_free(lane);
    mem_free(lane);
}

struct strbuf *isolate_session_begin(struct isolate_lane *lane, uint64_t order)
{
    lane->out.len = 0;
    isolate_wire_put(&lane->out, order);
    return &lane->out;
}

bool isolate_session_order(struct isolate_session *s, struct isolate_lane *lane,
                           struct isolate_reply *reply)
{
    if (lane->out.len && !isolate_frame_send(lane->fd, lane->out.data, lane->out.len, NULL, 0))
        return false;
    if (lane->out.cap > PACKET_MAX_BYTES)
        strbuf_fini(&lane->out);
    while (!reply->done) {
        const uint8_t *bytes;
        size_t len;
        enum isolate_frame_result r =
            isolate_frame_receive(&lane->frame, lane->fd, false, true, &bytes, &len);
        if (r == ISOLATE_FRAME_OK && isolate_records_apply(s, bytes, len, reply))
            continue;
        if (r != ISOLATE_FRAME_GONE)
            atomic_store_explicit(&s->doomed, true, memory_order_relaxed);
        isolate_session_end(s);
        err_free(reply->err);
        reply->err = NULL;
        return false;
    }
    return true;
}

struct err *isolate_session_take(struct isolate_session *s, uint64_t bytes, uint64_t *ret_offset)
{
    if (!budget_charge(bytes))
        return budget_busy(bytes, "%s: no room for %" PRIu64 " bytes of inputs", s->model, bytes);
    if (isolate_pool_take(s->pool, bytes, ret_offset))
        return NULL;
    budget_release(bytes);
    return err_busy("%s: no room for %" PRIu64 " bytes of inputs in the memory that is "
                    "shared with its process, of which %" PRIu64
                    " bytes are in use; try again later, or raise ISOLATION_MEMORY_MB",
                    s->model, bytes, isolate_pool_used(s->pool));
}

void isolate_session_give(struct isolate_session *s, uint64_t offset, uint64_t bytes)
{
    isolate_pool_give(s->pool, offset, clock_now_ns());
    budget_release(bytes);
}

static bool makes_sense(const struct isolate_session *s, uint64_t slot, uint64_t offset,
                        uint64_t bytes)
{
    return slot < ISOLATE_SLOTS && offset % 64 == 0 && bytes <= s->shared_bytes &&
           offset <= s->shared_bytes - bytes;
}

/* Released, so that all reads of the output happened before the child, which acquires it, reuses
 * the place. */
static void done_with(struct isolate_session *s, uint64_t slot)
{
    __atomic_store_n(&s->out[slot], 1, __ATOMIC_RELEASE);
}

static void isolate_session_give_back(struct buf *b)
{
    struct lent *l = (struct lent *)b;
    struct isolate_session *s = l->session;
    budget_release(b->size);
    done_with(s, l->slot);
    mem_free(l);
    isolate_session_unref(s);
}

struct buf *isolate_session_output(struct isolate_session *s, uint64_t slot, uint64_t offset,
                                   uint64_t bytes, bool *ret_bad)
{
    *ret_bad = !makes_sense(s, slot, offset, bytes);
    if (*ret_bad)
        return NULL;
    if (!budget_charge(bytes)) {
        done_with(s, slot);
        return NULL;
    }
    struct lent *l = MEM_NEW(struct lent);
    buf_init(&l->buf, s->out + ISOLATE_SLOTS + offset, bytes, isolate_session_give_back);
    l->session = isolate_session_ref(s);
    l->slot = slot;
    return &l->buf;
}

bool isolate_session_drop_output(struct isolate_session *s, uint64_t slot, uint64_t offset,
                                 uint64_t bytes)
{
    if (!makes_sense(s, slot, offset, bytes))
        return false;
    done_with(s, slot);
    return true;
}

bool isolate_session_trim(struct isolate_session *s)
{
    time_ns now = clock_now_ns();
    return isolate_pool_trim(s->pool, now > ISOLATE_IDLE_NS ? now - ISOLATE_IDLE_NS : 0);
}
