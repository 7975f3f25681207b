#include "grpc/grpc_front.h"

#include "base/mem.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_delay.h"
#include "grpc/grpc_method.h"
#include "metrics/front_metrics.h"
#include "net/door.h"
#include "net/forward.h"
#include "net/helpers.h"
#include "net/listener.h"
#include "os/mutex.h"
#include "os/sock.h"
#include "server/server.h"
#include "tracing/tracing.h"

/* Late connections were answered already; this time is for those accepted last. */
#define LATE_PATIENCE TIME_MS(200)

/* The part of one worker, and the messages that tell it to stop. */
struct part {
    struct grpc_home home; /* first member */
    struct mail goodbye;
    struct mail closing;
    struct mail cut;
    bool gone;   /* only late connections are left; guarded by front->lock */
    bool closed; /* no connections are left, and none will come; guarded by front->lock */
};

struct grpc_front {
    struct server *server;
    const struct grpc_service *service;
    struct listener *listener;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    struct part *parts; /* one per worker */
    struct helpers *helpers;
    struct forward *forward;
    bool stopped, closed;
    bool shared;       /* another server has the port too */
    struct mutex lock; /* rank LEAF; guards left, part.gone and part.closed */
    struct mutex_cond empty;
    unsigned cut;  /* calls that were cut; guarded by lock */
    unsigned left; /* parts that may still have connections that are waited for */
};

static struct part *grpc_front_part(struct grpc_front *f, const struct worker *w)
{
    return &f->parts[w->index];
}

/* Tells the waiting thread that a worker's last connection has ended: the last awaited one for
 * grpc_front_stop, the last of all for grpc_front_close. */
static void tell_if_gone(struct part *p)
{
    struct grpc_front *f = p->home.front;
    bool empty = p->home.closing ? list_empty(&p->home.conns) : !p->home.awaited;
    if (!p->home.stopping || !empty)
        return;
    bool *told = p->home.closing ? &p->closed : &p->gone;
    mutex_lock(&f->lock);
    if (!*told) {
        *told = true;
        f->left--;
        mutex_cond_signal(&f->empty);
    }
    mutex_unlock(&f->lock);
}

static void on_conn_gone(struct grpc_home *home)
{
    listener_closed(home->front->listener, home->worker, home->strangers);
    tell_if_gone((struct part *)home);
}

static void on_accepted(struct worker *w, int fd, void *owner)
{
    struct grpc_front *f = owner;
    struct grpc_home *home = &grpc_front_part(f, w)->home;
    if (home->closing) {
        sock_close(fd);
        listener_closed(f->listener, w, home->strangers);
        return;
    }
    grpc_conn_open(home, fd);
}

static void say_goodbye(struct part *p)
{
    LIST_EACH (node, &p->home.conns)
        grpc_conn_goodbye(LIST_ITEM(node, struct grpc_conn, node));
    tell_if_gone(p);
}

static void on_goodbye(struct mail *m)
{
    struct part *p = LIST_ITEM(m, struct part, goodbye);
    p->home.stopping = true;
    say_goodbye(p);
}

static void on_closing(struct mail *m)
{
    struct part *p = LIST_ITEM(m, struct part, closing);
    p->home.closing = true;
    say_goodbye(p);
}

/* Counted before the last connection is gone: the front end's count is read then. */
static void cut_conn(struct grpc_front *f, struct grpc_conn *c)
{
    unsigned cut = grpc_conn_cut(c);
    mutex_lock(&f->lock);
    f->cut += cut;
    mutex_unlock(&f->lock);
    grpc_conn_close(c);
}

static void on_cut(struct mail *m)
{
    struct part *p = LIST_ITEM(m, struct part, cut);
    LIST_EACH (node, &p->home.conns) {
        struct grpc_conn *c = LIST_ITEM(node, struct grpc_conn, node);
        if (p->home.closing || !c->late)
            cut_conn(p->home.front, c);
    }
    tell_if_gone(p);
}

static void grpc_front_give_up(struct tls_conn *t)
{
    grpc_conn_close(t->owner);
}

static void init_parts(struct grpc_front *f, const struct door *door)
{
    f->left = f->server->worker_count;
    f->helpers = helpers_new(f->left);
    const struct options *options = f->server->options;
    f->parts = mem_zalloc(f->left * sizeof(*f->parts));
    for (unsigned i = 0; i < f->left; i++) {
        struct part *p = &f->parts[i];
        p->home.worker = &f->server->workers[i];
        p->home.front = f;
        p->home.service = f->service;
        p->home.callbacks = f->callbacks;
        p->home.options = f->options;
        p->home.helpers = f->helpers;
        p->home.forward = f->forward;
        grpc_keepalive_rules(options, &p->home.rules);
        p->home.guard = (struct guard){
            .restrictions = &options->grpc_restrictions,
            .prefix = GUARD_GRPC_PREFIX,
            .what = "protocol",
            .keys = door->keys,
        };
        p->home.pack_level = (uint8_t)options->grpc_compression;
        p->home.curious = f->forward || options->grpc_restrictions.any || door->keys ||
                          p->home.pack_level || tracing_wants_context(f->server->tracing);
        p->home.delays = grpc_delay_read();
        p->home.conn_gone = on_conn_gone;
        p->home.metrics = front_metrics_new(f->service->metrics());
        p->home.tls = (struct tls_home){
            .tls = door->tls, .loop = p->home.worker->loop, .give_up = grpc_front_give_up};
        tls_conn_home_init(&p->home.tls);
        list_init(&p->home.conns);
        p->goodbye.deliver = on_goodbye;
        p->closing.deliver = on_closing;
        p->cut.deliver = on_cut;
    }
}

struct err *grpc_front_open(struct server *s, const struct grpc_service *service,
                            const char *address, uint16_t port, bool reuse, const struct door *door,
                            struct grpc_front **ret)
{
    struct grpc_front *f = MEM_NEW(struct grpc_front);
    f->server = s;
    f->service = service;
    mutex_init(&f->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&f->empty);
    struct err *e = NULL;
    if (nghttp2_session_callbacks_new(&f->callbacks) != 0 || nghttp2_option_new(&f->options) != 0) {
        e = err_new(STATUS_UNAVAILABLE, "no memory for the gRPC front end");
    } else {
        grpc_conn_callbacks(f->callbacks);
        grpc_conn_options(f->options);
        e = forward_new("grpc-header-forward-pattern", s->options->grpc_header_pattern,
                        &f->forward);
        init_parts(f, door);
    }
    if (!e) {
        e = listener_open(s, address, port, reuse, 0, on_accepted, NULL, f, &f->listener);
    }
    if (e) {
        grpc_front_free(f);
        return e;
    }
    f->shared = reuse && grpc_front_port(f);
    *ret = f;
    return NULL;
}

struct err *grpc_front_share(struct grpc_front *f)
{
    return f ? listener_share(f->listener) : NULL;
}

uint16_t grpc_front_port(const struct grpc_front *f)
{
    return listener_port(f->listener);
}

unsigned grpc_front_connections(const struct grpc_front *f)
{
    return (unsigned)listener_connections(f->listener);
}

/* Posts one message of each part to its worker. */
static void grpc_front_post_all(struct grpc_front *f, size_t mail_offset)
{
    for (unsigned i = 0; i < f->server->worker_count; i++) {
        struct mail *m = (struct mail *)(void *)((char *)&f->parts[i] + mail_offset);
        loop_post(f->server->workers[i].loop, m, m);
    }
}

/* Tells every part to end, and waits until no awaited connection is left. After `until`, the
 * rest is closed. */
static void end_connections(struct grpc_front *f, size_t mail_offset, time_ns until)
{
    mutex_lock(&f->lock);
    f->left = f->server->worker_count;
    mutex_unlock(&f->lock);
    grpc_front_post_all(f, mail_offset);
    mutex_lock(&f->lock);
    while (f->left && mutex_cond_wait_until(&f->empty, &f->lock, until))
        ;
    bool cut = f->left > 0;
    mutex_unlock(&f->lock);
    if (!cut)
        return;
    grpc_front_post_all(f, offsetof(struct part, cut));
    mutex_lock(&f->lock);
    while (f->left)
        mutex_cond_wait(&f->empty, &f->lock);
    mutex_unlock(&f->lock);
}

unsigned grpc_front_stop(struct grpc_front *f, time_ns until)
{
    if (!f || f->stopped)
        return 0;
    f->stopped = true;
    if (f->shared)
        listener_stop(f->listener); /* who comes now is served by the other server */
    end_connections(f, offsetof(struct part, goodbye), until);
    mutex_lock(&f->lock);
    unsigned cut = f->cut;
    mutex_unlock(&f->lock);
    return cut;
}

void grpc_front_close(struct grpc_front *f)
{
    if (!f || f->closed)
        return;
    f->closed = true;
    listener_stop(f->listener);
    end_connections(f, offsetof(struct part, closing), clock_now_ns() + LATE_PATIENCE);
    helpers_free(f->helpers);
    f->helpers = NULL;
}

void grpc_front_free(struct grpc_front *f)
{
    if (!f)
        return;
    helpers_free(f->helpers);
    forward_free(f->forward);
    listener_free(f->listener);
    for (unsigned i = 0; f->parts && i < f->server->worker_count; i++) {
        tls_conn_home_fini(&f->parts[i].home.tls);
        front_metrics_free(f->parts[i].home.metrics);
        mem_free(f->parts[i].home.batch);
    }
    mem_free(f->parts);
    nghttp2_option_del(f->options);
    nghttp2_session_callbacks_del(f->callbacks);
    mutex_cond_fini(&f->empty);
    mutex_fini(&f->lock);
    mem_free(f);
}
