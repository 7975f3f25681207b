#include "net/listener.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/turns.h"
#include "os/mutex.h"
#include "os/sock.h"
#include "os/sock_unix.h"
#include "server/quota.h"
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define ACCEPTS_PER_TURN 16
#define ACCEPTS_WARILY   4    /* per turn, in the slow lane */
#define ACCEPTS_AT_END   4096 /* of the backlog when the listener stops */
#define BACK_OFF         TIME_MS(100)

#define RAISE_IT "raise the limit (ulimit -n 65536, LimitNOFILE=65536 of a systemd unit)"

/* The watch of one worker. */
struct watch {
    struct loop_fd fd;
    struct loop_timer again; /* accept() failed because a resource was missing: look again then */
    struct mail start;
    struct mail stop;
    struct worker *worker;
    struct listener *listener;
    bool added;
};

struct listener {
    struct server *server;
    int fd;
    uint16_t port;
    char name[128];                  /* for the log */
    struct sock_unix_file *own_file; /* NULL = not a Unix socket */
    uint32_t max_connections;
    uint32_t kept; /* places reserved for this listener */
    listener_accepted_fn accepted;
    listener_refused_fn refused;
    void *owner;
    struct watch *watches;   /* one per worker */
    atomic_uint connections; /* relaxed: only a limit */
    struct mutex lock;       /* rank LEAF; guards busy, waits_to_share, stopped */
    struct mutex_cond settled;
    /* watches that are set, plus connections that are being handed to another worker */
    unsigned busy;
    bool waits_to_share; /* the port is shared: nothing is accepted before listener_share */
    bool stopped;
};

/* A connection that is being handed to its worker. */
struct hand_off {
    struct mail mail;
    struct listener *listener;
    struct worker *worker;
    int fd;
};

static void busy_add(struct listener *l)
{
    mutex_lock(&l->lock);
    l->busy++;
    mutex_unlock(&l->lock);
}

static void busy_drop(struct listener *l)
{
    mutex_lock(&l->lock);
    if (--l->busy == 0)
        mutex_cond_broadcast(&l->settled);
    mutex_unlock(&l->lock);
}

static void handed_off(struct mail *m)
{
    struct hand_off *h = (struct hand_off *)m;
    h->listener->accepted(h->worker, h->fd, h->listener->owner);
    busy_drop(h->listener);
    mem_free(h);
}

/* The worker with the fewest connections; among equals the one that accepted, if any. */
static struct worker *least_loaded(struct server *s, struct worker *self)
{
    struct worker *best = self ? self : &s->workers[0];
    unsigned fewest = atomic_load_explicit(&best->connections, memory_order_relaxed);
    for (unsigned i = 0; i < s->worker_count; i++) {
        unsigned n = atomic_load_explicit(&s->workers[i].connections, memory_order_relaxed);
        if (n < fewest) {
            fewest = n;
            best = &s->workers[i];
        }
    }
    return best;
}

static void give_place(struct listener *l)
{
    uint32_t before = atomic_fetch_sub_explicit(&l->connections, 1, memory_order_relaxed);
    quota_give(l->kept, before);
}

static bool take_place(struct listener *l)
{
    uint32_t before = atomic_fetch_add_explicit(&l->connections, 1, memory_order_relaxed);
    if (quota_take(l->kept, before) && before < l->max_connections)
        return true;
    give_place(l);
    if (before >= l->max_connections)
        LOG_WARN("connection refused: %u are open on %s, which takes no more", before, l->name);
    else
        LOG_WARN("connection refused: %u are open on %s, and this process may open %" PRIu64
                 " files: " RAISE_IT,
                 before, l->name, quota_files());
    return false;
}

static void listener_place(struct listener *l, struct worker *self, int fd)
{
    if (!take_place(l)) {
        if (l->refused)
            l->refused(fd, l->owner);
        sock_close(fd);
        return;
    }
    struct worker *w = least_loaded(l->server, self);
    atomic_fetch_add_explicit(&w->connections, 1, memory_order_relaxed);
    if (w == self) {
        l->accepted(w, fd, l->owner);
        return;
    }
    struct hand_off *h = MEM_NEW(struct hand_off);
    *h = (struct hand_off){.mail = {.deliver = handed_off}, .listener = l, .worker = w, .fd = fd};
    busy_add(l);
    loop_post(w->loop, &h->mail, &h->mail);
}

static void watch_on(struct watch *w)
{
    struct err *e = loop_add(w->worker->loop, &w->fd, EPOLLIN | EPOLLEXCLUSIVE);
    w->added = !e;
    if (!e)
        return;
    LOG_WARN("%s: %s", w->listener->name, err_message(e));
    err_free(e);
    loop_timer_set(w->worker->loop, &w->again, loop_now(w->worker->loop) + BACK_OFF);
}

static void listener_look_again(struct loop_timer *t)
{
    watch_on(LIST_ITEM(t, struct watch, again));
}

/* The connection stays in the backlog. Looking at it again at once would only spin. */
static void back_off(struct watch *w, int error)
{
    LOG_WARN("accepting a connection on %s: %s%s", w->listener->name, strerror(error),
             error == EMFILE ? ": " RAISE_IT : "");
    loop_del(w->worker->loop, &w->fd);
    w->added = false;
    loop_timer_set(w->worker->loop, &w->again, loop_now(w->worker->loop) + BACK_OFF);
}

static void accept_some(struct watch *w, int most)
{
    for (int i = 0; i < most; i++) {
        int conn = sock_accept(w->fd.fd);
        if (conn >= 0) {
            listener_place(w->listener, w->worker, conn);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            back_off(w, errno);
        else if (errno == EINTR || errno == ECONNABORTED)
            continue;
        return;
    }
}

static void listener_on_ready(struct loop_fd *fd, uint32_t events)
{
    (void)events;
    accept_some(LIST_ITEM(fd, struct watch, fd),
                fd->lane == LOOP_LANE_SLOW ? ACCEPTS_WARILY : ACCEPTS_PER_TURN);
}

static void on_start(struct mail *m)
{
    struct watch *w = LIST_ITEM(m, struct watch, start);
    mutex_lock(&w->listener->lock);
    bool stopped = w->listener->stopped;
    mutex_unlock(&w->listener->lock);
    if (!stopped) /* else the mail that stops it may have come before this one */
        watch_on(w);
}

static void on_stop(struct mail *m)
{
    struct watch *w = LIST_ITEM(m, struct watch, stop);
    /* The clients in the backlog are connected, and may have sent a request. */
    if (w->added)
        accept_some(w, ACCEPTS_AT_END);
    loop_timer_clear(w->worker->loop, &w->again);
    if (w->added)
        loop_del(w->worker->loop, &w->fd);
    w->added = false;
    busy_drop(w->listener);
}

static void listener_start_all(struct listener *l)
{
    for (unsigned i = 0; i < l->server->worker_count; i++) {
        struct watch *w = &l->watches[i];
        loop_post(w->worker->loop, &w->start, &w->start);
    }
}

struct err *listener_open(struct server *s, const char *address, uint16_t port, bool reuse,
                          uint32_t max_connections, listener_accepted_fn accepted,
                          listener_refused_fn refused, void *owner, struct listener **ret)
{
    int fd;
    struct err *e = sock_listen(address, port, reuse, &fd);
    if (e)
        return e;
    struct listener *l = MEM_NEW(struct listener);
    l->server = s;
    l->fd = fd;
    l->port = sock_port(fd);
    l->own_file = sock_unix_file(fd);
    if (l->own_file)
        snprintf(l->name, sizeof(l->name), "%s", address);
    else
        snprintf(l->name, sizeof(l->name), "port %u", l->port);
    l->max_connections = max_connections ? max_connections : UINT32_MAX;
    l->kept = quota_open();
    l->accepted = accepted;
    l->refused = refused;
    l->owner = owner;
    mutex_init(&l->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&l->settled);
    l->watches = mem_zalloc(s->worker_count * sizeof(*l->watches));
    l->busy = s->worker_count;
    l->waits_to_share = reuse && l->port;
    *ret = l; /* set before the first connection can come */
    for (unsigned i = 0; i < s->worker_count; i++) {
        struct watch *w = &l->watches[i];
        *w = (struct watch){
            .fd = {.fd = fd, .ready = listener_on_ready},
            .again = LOOP_TIMER_INIT(listener_look_again),
            .start = {.deliver = on_start},
            .stop = {.deliver = on_stop},
            .worker = &s->workers[i],
            .listener = l,
        };
    }
    if (!l->waits_to_share)
        listener_start_all(l);
    return NULL;
}

struct err *listener_share(struct listener *l)
{
    struct err *e = NULL;
    mutex_lock(&l->lock);
    bool now = l->waits_to_share && !l->stopped;
    if (now)
        e = sock_listen_shared(l->fd);
    if (!e)
        l->waits_to_share = false;
    mutex_unlock(&l->lock);
    if (now && !e)
        listener_start_all(l);
    return e;
}

uint16_t listener_port(const struct listener *l)
{
    return l->port;
}

static void wait_settled(struct listener *l)
{
    mutex_lock(&l->lock);
    while (l->busy)
        mutex_cond_wait(&l->settled, &l->lock);
    mutex_unlock(&l->lock);
}

void listener_stop(struct listener *l)
{
    if (!l)
        return;
    CHECK(!loop_current());
    mutex_lock(&l->lock);
    bool again = l->stopped;
    l->stopped = true;
    mutex_unlock(&l->lock);
    if (again)
        return;
    if (l->port)
        sock_refuse_new(l->fd);
    sock_unix_remove(l->own_file);
    l->own_file = NULL;
    for (unsigned i = 0; i < l->server->worker_count; i++) {
        struct watch *w = &l->watches[i];
        loop_post(w->worker->loop, &w->stop, &w->stop);
    }
    wait_settled(l);
    /* Handshakes that were in progress have ended by now. */
    int conn;
    while ((conn = sock_accept(l->fd)) >= 0)
        listener_place(l, NULL, conn);
    sock_close(l->fd);
    wait_settled(l);
}

void listener_closed(struct listener *l, struct worker *w, uint32_t strangers)
{
    struct watch *watch = &l->watches[w->index];
    if (watch->added)
        turns_judge(w->loop, &watch->fd, strangers, false);
    atomic_fetch_sub_explicit(&w->connections, 1, memory_order_relaxed);
    give_place(l);
}

uint32_t listener_connections(const struct listener *l)
{
    return atomic_load_explicit(&l->connections, memory_order_relaxed);
}

void listener_free(struct listener *l)
{
    if (!l)
        return;
    quota_close(l->kept);
    mutex_cond_fini(&l->settled);
    mutex_fini(&l->lock);
    mem_free(l->watches);
    mem_free(l);
}
