#pragma once
/* The way of calls to a server: a lane carries one call at a time. Over HTTP it is a connection;
 * over gRPC several lanes share one. The loop's thread only. */
#include "base/err.h"
#include "base/strbuf.h"
#include "bench/bench_options.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

struct loop;
struct bench_wire;
struct ProtobufCMessage;

/* The longest answer that is kept. */
#define BENCH_WIRE_ANSWER_BYTES ((size_t)256 << 20)
#define BENCH_WIRE_ERROR_BYTES  ((size_t)1 << 20) /* of HTTP: of one that tells of an error */
#define BENCH_WIRE_PIECES       2
#define BENCH_WIRE_ANSWER_NS    TIME_S(30) /* the longest wait for an answer that nobody measures */

/* One call and its answer. Embedded in its owner; everything that it points to stays until done. */
struct bench_call {
    const char *path;                       /* of gRPC: "/SERVICE/METHOD" */
    struct iovec pieces[BENCH_WIRE_PIECES]; /* of HTTP a whole message, of gRPC one with prefix */
    bool keep;                              /* the answer is wanted */
    struct strbuf answer;                   /* of gRPC the message without its prefix */
    time_ns begun, sent, came;              /* its bytes were sent, the first of its answer came */
    uint32_t responses;                     /* messages of its answer, over a stream */
    /* e  the call failed, or the server answered with an error: owned by the function, which may
     *    begin the next call */
    void (*done)(struct bench_call *c, struct err *e);
};

struct bench_lane {
    void (*send)(struct bench_lane *l, struct bench_call *c);
    void (*free)(struct bench_lane *l);
};

/* bench_wire_new - the way to the server that the options name; connects nothing.
 * o, loop  borrowed until bench_wire_free, which comes after the end of all lanes */
struct bench_wire *bench_wire_new(const struct bench_options *o, struct loop *loop);
void bench_wire_free(struct bench_wire *w);

/* How the calls of a lane are answered. */
enum bench_lane_kind {
    BENCH_LANE_UNARY,
    BENCH_LANE_STREAM,    /* over one stream of ModelStreamInfer, with one response each */
    BENCH_LANE_DECOUPLED, /* the same, with any number; the last one says so */
};

/* bench_wire_lane - a new lane, connected. Streams are of gRPC.
 * errors  UNAVAILABLE: nobody listens there; INTERNAL: this process has no descriptor left */
struct err *bench_wire_lane(struct bench_wire *w, enum bench_lane_kind kind,
                            struct bench_lane **ret);

/* bench_wire_put - append a message of gRPC with its prefix. */
void bench_wire_put(struct strbuf *to, const struct ProtobufCMessage *m);

/* bench_wire_ask - one call, from its begin to its end. Runs the loop.
 * c       its path and pieces
 * errors  the server's; 30 seconds went by; somebody else has stopped the loop */
struct err *bench_wire_ask(struct bench_wire *w, struct bench_lane *l, struct bench_call *c);

/* bench_wire_late - the error of a call that has no answer after BENCH_WIRE_ANSWER_NS. */
struct err *bench_wire_late(void);
