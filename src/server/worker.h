#pragma once
/* A loop thread with its data: what a connection needs from the server, without locks. */
#include "os/loop.h"
#include "serve/submit.h"
#include "serve/table.h"
#include "server/housekeeping.h"

#include <stdatomic.h>

struct server;
struct thread;
struct tracing;

/* This many bytes of the receive buffer are never given back. */
#define WORKER_RECEIVE_KEEP ((size_t)16384)

/* Which of a loop's connections was read last, and since when no other one was: net/turns.h. */
struct worker_reader {
    const void *last;
    time_ns since;
};

struct worker {
    struct server *server;
    unsigned index;
    struct loop *loop;
    struct tracing *tracing; /* the server's */
    struct table_view view;
    struct submitter submitter;
    struct thread *thread;
    /* number of open connections; listeners read it to choose the worker with the fewest */
    atomic_uint connections;
    /* One receive buffer per loop, so that a connection has its own buffer only while it
     * receives a large body. The bytes are consumed or copied before the next connection reads. */
    char *receive;
    size_t receive_bytes;
    /* the most bytes received at once lately; set by worker_received */
    size_t receive_high;
    bool receive_full; /* pages after WORKER_RECEIVE_KEEP were touched */
    struct worker_reader reader;
    struct housekeeping housekeeping;
    time_ns told_turn; /* the turn that told_bytes belongs to */
    size_t told_bytes;
};

/* The most bytes of information about the server that one turn produces, and the time after which
 * a turn begins no more of it. Such answers are made at once, may be long, and a client can ask for
 * many at a time. After that, connections wait for another turn. */
#define WORKER_TELL_BYTES ((size_t)65536)
#define WORKER_TELL_TIME  TIME_US(200)

/* The least that an answer counts: even a short one is looked up, described and printed. */
#define WORKER_TELL_LEAST ((size_t)16384)

/* worker_may_tell - true if this turn may still produce such answers. The first one always may.
 * worker_told - an answer of this many bytes was made. */
static inline bool worker_may_tell(struct worker *w)
{
    time_ns turn = loop_now(w->loop);
    if (w->told_turn != turn) {
        w->told_turn = turn;
        w->told_bytes = 0;
    }
    return !w->told_bytes ||
           (w->told_bytes < WORKER_TELL_BYTES && clock_now_ns() - turn < WORKER_TELL_TIME);
}

static inline void worker_told(struct worker *w, size_t bytes)
{
    w->told_bytes += bytes > WORKER_TELL_LEAST ? bytes : WORKER_TELL_LEAST;
}

/* worker_received - note that n bytes were read into the receive buffer. */
static inline void worker_received(struct worker *w, size_t n)
{
    if (n > w->receive_high)
        w->receive_high = n;
}
