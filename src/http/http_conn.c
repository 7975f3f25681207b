#include "http/http_conn.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/slab.h"
#include "http/http2_answer.h"
#include "http/http2_conn.h"
#include "http/http2_stream.h"
#include "http/http_event.h"
#include "http/http_exchange.h"
#include "http/http_out.h"
#include "http/http_read.h"
#include "http/http_shard.h"
#include "infer/request.h"
#include "net/door.h"
#include "net/helpers.h"
#include "net/listener.h"
#include "net/tls/wire.h"
#include "net/turns.h"
#include "server/worker.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LINGER_TIMEOUT TIME_S(2)

/* Waits while the front end stops. A client that has just had an answer probably sends another
 * request soon. */
#define DRAIN_PATIENCE TIME_MS(500)
#define DRAIN_IDLE     TIME_MS(20) /* for a client that was silent for longer than RECENT */
#define DRAIN_HEAD     TIME_S(1)
#define RECENT         TIME_S(1)

#define IN_FLIGHT_MANY 8 /* requests of one connection */

static const struct slab slab = {.kind = SLAB_HTTP_CONN, .object_bytes = sizeof(struct http_conn)};

static struct loop *http_conn_loop(const struct http_conn *c)
{
    return c->shard->worker->loop;
}

static const struct http_patience *patience_of(const struct http_conn *c)
{
    return &c->shard->front->patience;
}

/* Whether some of what may become the preface of HTTP/2 came. */
static bool unsure(const struct http_conn *c)
{
    return c->preface && c->preface != HTTP_CONN_NO_PREFACE;
}

/* How long the current wait may last; TIME_NEVER while only the model is waited for. */
static time_ns http_conn_limit(const struct http_conn *c)
{
    const struct http_patience *p = patience_of(c);
    bool draining = c->shard->draining;
    if (c->lingering)
        return draining ? c->patience / 2 : LINGER_TIMEOUT;
    if (c->backlog || c->phase == HTTP_PHASE_BODY || c->phase == HTTP_PHASE_CHUNKS ||
        c->phase == HTTP_PHASE_DISCARD)
        return draining ? time_sooner(DOOR_STALL, p->stall) : p->stall;
    if (c->in_flight || c->phase == HTTP_PHASE_TURN)
        return TIME_NEVER;
    if (http1_idle(&c->parser) && !unsure(c))
        return draining ? c->patience : p->idle;
    return draining ? time_sooner(DRAIN_HEAD, p->head) : p->head;
}

/* Sets the timer earlier when a shorter wait begins. When the timer fires after progress, it is
 * set again. */
static void expect_within(struct http_conn *c, time_ns limit)
{
    time_ns when = c->since + limit;
    if (!c->timer.heap_index || c->timer.when > when)
        loop_timer_set(http_conn_loop(c), &c->timer, when);
}

void http_conn_wait(struct http_conn *c)
{
    time_ns limit = c->h2 ? TIME_NEVER : http_conn_limit(c);
    if (limit != TIME_NEVER)
        expect_within(c, limit);
}

/* A few bytes of a large body do not wake the loop (http_body.c), so look for them before the
 * body counts as stalled. */
static void look_for_body(struct http_conn *c)
{
    if (c->phase == HTTP_PHASE_BODY && c->low_water > 1)
        http_read_some(c);
}

/* Asks within the answer that is being given, which is a stream, if it has begun; else in front of
 * it, where its client takes interim ones: HTTP/1.0 knows none. */
static void ask_at(struct http_exchange *first)
{
    if (first->part == HTTP_PART_EVENT)
        return; /* it is about to be written */
    if (first->begun) {
        http_event_ask(first);
    } else if (!first->explicit_keep_alive) {
        struct http_exchange *x = http_exchange_before(first);
        http_exchange_static(x, 100, NULL, NULL, 0);
    }
}

/* Asks a client whether it is still there. A client that is gone looks like one that closed only
 * its side. Only sending something tells them apart: the system of a client that is gone answers
 * with a reset, which ends the connection and cancels its requests. Every HTTP/1.1 client
 * ignores "100 Continue" before an answer. */
static void ask_whether_there(struct http_conn *c)
{
    c->asked = true;
    if (!c->backlog && !list_empty(&c->line.exchanges))
        ask_at(LIST_ITEM(c->line.exchanges.next, struct http_exchange, node));
}

/* Gives up a message that stalls. Earlier requests are still answered. */
static void http_conn_give_up(struct http_conn *c)
{
    if (c->backlog || !c->in_flight) {
        http_conn_kill(c);
        return;
    }
    http_read_no_more(c);
    loop_timer_set(http_conn_loop(c), &c->timer,
                   loop_now(http_conn_loop(c)) + patience_of(c)->shortest);
    http_conn_watch(c);
}

static void on_timer(struct loop_timer *t)
{
    struct http_conn *c = LIST_ITEM(t, struct http_conn, timer);
    time_ns now = loop_now(http_conn_loop(c));
    if (c->h2) {
        http2_conn_due(c);
        return;
    }
    if ((c->ended || c->hung_up) && !c->asked)
        ask_whether_there(c);
    if (http_conn_limit(c) != TIME_NEVER && now >= c->since + http_conn_limit(c))
        look_for_body(c);
    if (c->dead)
        return;
    time_ns limit = http_conn_limit(c);
    if (limit == TIME_NEVER)
        loop_timer_set(http_conn_loop(c), t, now + patience_of(c)->shortest);
    else if (now < c->since + limit)
        loop_timer_set(http_conn_loop(c), t, c->since + limit);
    else if (c->phase == HTTP_PHASE_HEAD && !c->backlog)
        http_conn_finish(c);
    else
        http_conn_give_up(c);
}

/* True if there is room for further messages. */
static bool takes_messages(const struct http_conn *c)
{
    return c->phase == HTTP_PHASE_HEAD && !c->ended && !c->held && !c->backlog &&
           c->in_flight < HTTP_CONN_MAX_IN_FLIGHT;
}

void http_conn_watch(struct http_conn *c)
{
    if (c->h2) {
        http2_conn_watch(c);
        return;
    }
    bool put_off = c->phase == HTTP_PHASE_TURN;
    bool more = !put_off && !c->ended && (c->phase != HTTP_PHASE_HEAD || takes_messages(c));
    bool out = c->backlog || http_conn_waits_to_ask(c);
    bool blind = !more && !c->ended && !c->hung_up;
    uint32_t wanted = (more ? EPOLLIN : 0u) | (blind ? EPOLLRDHUP : 0u) | (out ? EPOLLOUT : 0u);
    loop_mod(http_conn_loop(c), &c->fd, wire_events(c->tls, wanted));
    if (c->backlog)
        expect_within(c, patience_of(c)->stall);
}

void http_conn_orphan(struct http_line *l)
{
    struct http_conn *c = l->conn;
    struct list *node;
    while ((node = list_pop(&l->exchanges))) {
        struct http_exchange *x = LIST_ITEM(node, struct http_exchange, node);
        c->in_flight--;
        c->unread -= x->held;
        c->event_bytes -= x->event_bytes;
        l->event_bytes -= x->event_bytes;
        x->conn = NULL;
        x->line = NULL;
        if (x->job)
            helpers_cancel(x->job);
        if (x->request)
            request_cancel(x->request);
        else if (!x->pending)
            http_exchange_free(x);
    }
}

void http_conn_kill(struct http_conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    loop_timer_clear(http_conn_loop(c), &c->timer);
    loop_del(http_conn_loop(c), &c->fd);
    if (c->tls && !c->h2 && !c->lingering && !http_conn_owes(c)) /* nothing is cut short */
        tls_conn_goodbye(c->tls);
    tls_conn_free(c->tls);
    c->tls = NULL;
    sock_close(c->fd.fd);
    http_conn_orphan(&c->line);
    if (c->h2)
        http2_conn_abandon(c->h2);
    loop_later(http_conn_loop(c), LOOP_PHASE_FLUSH, &c->flush);
}

static void conn_free(struct http_conn *c)
{
    struct http_shard *s = c->shard;
    if (!c->proven)
        turns_stranger_gone(&s->strangers);
    http_body_end(&c->body);
    err_free(c->body.error);
    mem_free(c->held);
    http_out_drop(c->backlog);
    http2_conn_free(c->h2);
    budget_drop(c->account, c->held_len);
    budget_account_close(c->account);
    http1_fini(&c->parser);
    list_remove(&c->node);
    slab_free(&slab, c);
    front_metrics_add(&s->metrics->closed, 1);
    listener_closed(s->front->listener, s->worker, s->strangers);
    http_front_gone(s);
}

static void http_conn_on_flush(struct loop_task *t)
{
    struct http_conn *c = LIST_ITEM(t, struct http_conn, flush);
    if (c->dead) {
        conn_free(c);
        return;
    }
    if (c->h2) {
        http2_conn_flush(c);
        return;
    }
    http_out_flush(c);
    if (!c->held)
        turns_share_done(&c->share, http_conn_loop(c), HTTP_CONN_READ_MOST);
}

bool http_conn_is_due(const struct http_line *l)
{
    const struct list *exchanges = &l->exchanges;
    return !list_empty(exchanges) && LIST_ITEM(exchanges->next, struct http_exchange, node)->done;
}

bool http_conn_lags(const struct http_line *l)
{
    return l->stream ? http2_answer_lags(l->stream) : l->conn->backlog != NULL;
}

void http_conn_answered(struct http_conn *c, const struct http_exchange *x)
{
    if (x->line->exchanges.next != &x->node)
        return;
    if (x->line->stream)
        http2_stream_ready(x->line->stream);
    loop_later(http_conn_loop(c), LOOP_PHASE_FLUSH, &c->flush);
}

bool http_conn_is_told(const struct http_conn *c, const struct http_route *route)
{
    return c->shard->front->service->tells >> route->kind & 1;
}

bool http_conn_may_tell(const struct http_conn *c)
{
    return c->unread <= TURNS_UNREAD && worker_may_tell(c->shard->worker);
}

bool http_conn_waits_to_ask(const struct http_conn *c)
{
    return c->phase == HTTP_PHASE_TURN && c->unread <= TURNS_UNREAD;
}

void http_conn_of_use(struct http_conn *c, const struct http_route *route)
{
    c->turns = 0;
    if (!http_conn_is_told(c, route))
        c->told = 0;
    if (c->proven)
        return;
    c->proven = true;
    turns_stranger_known(&c->shard->strangers);
}

bool http_conn_owes(const struct http_conn *c)
{
    return c->in_flight || c->backlog || c->held || c->phase == HTTP_PHASE_TURN;
}

/* The client closed only its side, or is gone: see ask_whether_there. If it cannot be asked, or
 * its machine is gone, the system checks from time to time. */
static void look_whether_there(struct http_conn *c)
{
    sock_probe(c->fd.fd);
    http_conn_watch(c);
    loop_timer_set(http_conn_loop(c), &c->timer,
                   loop_now(http_conn_loop(c)) + patience_of(c)->ended);
}

void http_conn_ended(struct http_conn *c)
{
    if (c->lingering || !http_conn_owes(c)) {
        http_conn_kill(c);
        return;
    }
    c->ended = true;
    /* The rest of the message will not come. */
    if (c->phase != HTTP_PHASE_HEAD && c->phase != HTTP_PHASE_TURN)
        http_read_no_more(c);
    look_whether_there(c);
}

/* It closed its side while none of what it sends is read. That is read later if it is there. */
static void on_hung_up(struct http_conn *c)
{
    c->hung_up = true;
    look_whether_there(c);
}

void http_conn_finish(struct http_conn *c)
{
    if (c->ended) {
        http_conn_kill(c);
        return;
    }
    wire_end(c->fd.fd, c->tls);
    c->phase = HTTP_PHASE_IGNORE;
    c->lingering = true;
    c->since = loop_now(http_conn_loop(c));
    http_conn_orphan(&c->line);
    http_conn_watch(c);
    http_conn_wait(c);
}

static void http_conn_on_ready(struct loop_fd *fd, uint32_t events)
{
    struct http_conn *c = LIST_ITEM(fd, struct http_conn, fd);
    events = wire_ready(c->tls, events);
    bool many = (events & (EPOLLHUP | EPOLLERR)) && c->in_flight > IN_FLIGHT_MANY;
    if (turns_end_later(http_conn_loop(c), &c->fd, many))
        return;
    if (c->h2) {
        http2_conn_ready(c, events);
        return;
    }
    if (events & EPOLLOUT)
        http_out_continue(c);
    if (!c->dead && c->phase == HTTP_PHASE_TURN && !c->backlog)
        http_read_turn(c);
    if (!c->dead && (events & EPOLLIN) && (c->fd.events & EPOLLIN))
        http_read_some(c);
    else if (!c->dead && (events & (EPOLLERR | EPOLLHUP)))
        http_conn_kill(c);
    else if (!c->dead && (events & EPOLLRDHUP) && (c->fd.events & EPOLLRDHUP))
        on_hung_up(c);
}

void http_conn_open(struct http_shard *s, int fd)
{
    struct http_conn *c = slab_alloc(&slab);
    *c = (struct http_conn){
        .fd = {.fd = fd, .lane = turns_lane(s->strangers, true), .ready = http_conn_on_ready},
        .turns = s->strangers,
        .flush = {.run = http_conn_on_flush},
        .timer = LOOP_TIMER_INIT(on_timer),
        .shard = s,
        .phase = HTTP_PHASE_HEAD,
        .since = loop_now(s->worker->loop),
        .patience = DRAIN_PATIENCE,
        .low_water = 1,
        .share = {.bytes = HTTP_CONN_READ_FIRST},
    };
    list_init(&c->flush.node);
    c->line.conn = c;
    list_init(&c->line.exchanges);
    list_append(&s->conns, &c->node);
    front_metrics_add(&s->metrics->opened, 1);
    http1_init(&c->parser, http_read_piece, c);
    if (s->front->collect)
        http1_collect(&c->parser);
    if (s->tls.tls)
        c->tls = tls_conn_new(&s->tls, fd, c);
    struct err *e = loop_add(s->worker->loop, &c->fd, EPOLLIN);
    if (!e) {
        expect_within(c, patience_of(c)->shortest);
        return;
    }
    LOG_WARN("HTTP connection closed: %s", err_message(e));
    err_free(e);
    tls_conn_free(c->tls);
    c->tls = NULL;
    sock_close(fd);
    c->dead = true;
    loop_later(s->worker->loop, LOOP_PHASE_FLUSH, &c->flush);
}

struct budget_account *http_conn_account(struct http_conn *c)
{
    if (!c->account)
        c->account = budget_account_new();
    return c->account;
}

void http_conn_drain(struct http_conn *c)
{
    time_ns now = loop_now(http_conn_loop(c));
    if (c->dead || c->lingering)
        return;
    if (c->h2) {
        http2_conn_drain(c);
        return;
    }
    if (now > c->since + RECENT)
        c->patience = DRAIN_IDLE;
    c->since = now;
    if (takes_messages(c))
        http_read_pending(c);
    if (!c->dead)
        http_conn_wait(c);
}
