#include "bench/bench_wire.h"

#include "base/mem.h"
#include "bench/bench_wire_priv.h"
#include "codec/grpc_prefix.h"
#include "os/loop.h"
#include "os/sock.h"

#include <nghttp2/nghttp2.h>
#include <protobuf-c/protobuf-c.h>

struct bench_wire *bench_wire_new(const struct bench_options *o, struct loop *loop)
{
    struct bench_wire *w = MEM_NEW(struct bench_wire);
    w->options = o;
    w->loop = loop;
    w->buffer = mem_alloc(BENCH_WIRE_READ_BYTES);
    return w;
}

void bench_wire_free(struct bench_wire *w)
{
    if (!w)
        return;
    nghttp2_session_callbacks_del(w->callbacks);
    mem_free(w->buffer);
    mem_free(w);
}

struct err *bench_wire_connect(struct bench_wire *w, int *ret_fd)
{
    const struct bench_options *o = w->options;
    struct err *e = sock_connect(o->host, o->port, ret_fd);
    if (e && err_code(e) == STATUS_INTERNAL)
        return err_wrap(e, "too few file descriptors for so many connections: raise the limit "
                           "(ulimit -n)");
    return err_wrap(e, "no server there (-u HOST:PORT names another)");
}

struct err *bench_wire_lane(struct bench_wire *w, enum bench_lane_kind kind,
                            struct bench_lane **ret)
{
    return w->options->protocol == BENCH_GRPC ? bench_grpc_lane(w, kind, ret)
                                              : bench_http_lane(w, ret);
}

void bench_wire_put(struct strbuf *to, const ProtobufCMessage *m)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *at = (uint8_t *)strbuf_reserve(to, GRPC_PREFIX_BYTES + len);
    protobuf_c_message_pack(m, grpc_prefix_put(at, false, (uint32_t)len));
    to->len += GRPC_PREFIX_BYTES + len;
}

/* A call that somebody waits for. */
struct asked {
    struct loop *loop;
    struct loop_timer timer;
    struct err *error;
    bool over, late;
};

static _Thread_local struct asked *asked; /* at most one at a time */

static void bench_asked_done(struct bench_call *c, struct err *e)
{
    (void)c;
    asked->error = e;
    asked->over = true;
    loop_stop(asked->loop);
}

static void bench_asked_late(struct loop_timer *t)
{
    (void)t;
    asked->late = true;
    loop_stop(asked->loop);
}

struct err *bench_wire_late(void)
{
    return err_new(STATUS_UNAVAILABLE, "no answer within 30 seconds");
}

struct err *bench_wire_ask(struct bench_wire *w, struct bench_lane *l, struct bench_call *c)
{
    struct asked a = {.loop = w->loop, .timer = LOOP_TIMER_INIT(bench_asked_late)};
    asked = &a;
    c->keep = true;
    c->done = bench_asked_done;
    loop_timer_set(w->loop, &a.timer, clock_now_ns() + BENCH_WIRE_ANSWER_NS);
    l->send(l, c);
    loop_run(w->loop);
    loop_timer_clear(w->loop, &a.timer);
    asked = NULL;
    if (a.over)
        return a.error;
    return a.late ? bench_wire_late() : err_new(STATUS_CANCELLED, "ended before the answer came");
}
