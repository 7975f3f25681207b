#pragma once
/* A loop thread and what it owns: what a connection needs of the server, without locks. */
#include "os/loop.h"
#include "serve/submit.h"
#include "serve/table.h"
#include "server/housekeeping.h"

#include <stdatomic.h>

struct server;
struct thread;

/* Bytes of the receive buffer that are never given back. */
#define WORKER_RECEIVE_KEEP ((size_t)16384)

struct worker {
    struct server *server;
    unsigned index;
    struct loop *loop;
    struct table_view view;
    struct submitter submitter;
    struct thread *thread;
    atomic_uint connections; /* open ones; read by listeners that choose the least loaded worker */
    /* One receive buffer a loop: connections without a large body under way own none. Bytes are
     * consumed or copied before the next connection reads. */
    char *receive;
    size_t receive_bytes;
    /* the most that was received at once lately; whoever reads says so: worker_received */
    size_t receive_high;
    bool receive_full; /* pages beyond WORKER_RECEIVE_KEEP were touched */
    struct housekeeping housekeeping;
    time_ns told_turn; /* told_bytes is of the turn that began then */
    size_t told_bytes;
};

/* What a turn may spend on telling about the server: what is told is made up at once, each of it
 * may be long, and a client can ask for many at a time. Past that, connections wait for another
 * turn. */
#define WORKER_TELL_BYTES ((size_t)65536)
#define WORKER_TELL_LEAST \
    ((size_t)16384) /* even a short one costs so much: it is looked up, described and printed */

/* worker_may_tell - whether this turn has something left for telling. worker_told - an answer of
 * so many bytes was made up. */
static inline bool worker_may_tell(struct worker *w)
{
    if (w->told_turn != loop_now(w->loop)) {
        w->told_turn = loop_now(w->loop);
        w->told_bytes = 0;
    }
    return w->told_bytes < WORKER_TELL_BYTES;
}

static inline void worker_told(struct worker *w, size_t bytes)
{
    w->told_bytes += bytes > WORKER_TELL_LEAST ? bytes : WORKER_TELL_LEAST;
}

/* worker_received - n bytes were read into the receive buffer. */
static inline void worker_received(struct worker *w, size_t n)
{
    if (n > w->receive_high)
        w->receive_high = n;
}
