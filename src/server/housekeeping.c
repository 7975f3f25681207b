#include "server/housekeeping.h"

#include "base/slab.h"
#include "infer/factory.h"
#include "os/pages.h"
#include "os/pool.h"
#include "server/worker.h"

#include <malloc.h>

#define PERIOD_NS  TIME_S(1)
#define TRIM_BYTES ((size_t)4 << 20) /* of the pools at once, */
#define TRIM_PAUSE TIME_MS(1)        /* then others have their turn */
#define HEAP_KEEP  ((size_t)1 << 20) /* free bytes that are not worth giving back */
#define SLABS_MANY 16u               /* objects that are worth a look at the heap */

/* A receive buffer that was filled goes back once a second passed without much being received. */
static void trim_receive(struct worker *w)
{
    if (w->receive_high > WORKER_RECEIVE_KEEP)
        w->receive_full = true;
    else if (w->receive_full) {
        pages_forget(w->receive + WORKER_RECEIVE_KEEP, w->receive_bytes - WORKER_RECEIVE_KEEP);
        w->receive_full = false;
    }
    w->receive_high = 0;
}

/* Free bytes that the heap holds on to. */
static size_t heap_free_bytes(void)
{
    return mallinfo2().fordblks;
}

/* The heap gives back what a burst left: at once when its end is known, and when much was freed (a crowd of connections went away) and
 * not asked for again within a second. */
static void trim_heap(struct housekeeping *h, bool over)
{
    size_t idle = heap_free_bytes();
    bool much = idle > h->heap_idle + HEAP_KEEP;
    if (over || (much && h->heap_full)) {
        malloc_trim(0);
        h->heap_idle = heap_free_bytes(); /* counts what was given back, too */
        much = false;
    } else if (idle < h->heap_idle) {
        h->heap_idle = idle;
    }
    h->heap_full = much;
}

/* Gives back some of what the pools kept warm and goes on soon; returns whether there is anything left. */
static bool trim_pools(struct housekeeping *h, time_ns now)
{
    size_t kept;
    if (pool_trim_some(now > PERIOD_NS ? now - PERIOD_NS : 0, TRIM_BYTES, &kept))
        loop_timer_set(h->worker->loop, &h->trim, now + TRIM_PAUSE);
    return kept > 0;
}

static void trim_on(struct loop_timer *t)
{
    struct housekeeping *h = LIST_ITEM(t, struct housekeeping, trim);
    trim_pools(h, loop_now(h->worker->loop));
}

/* The pools and the heap of the process are the first worker's business. A burst is over when the pools have cooled down, and when
 * the loop's lists were shortened. */
static void trim_process(struct housekeeping *h, time_ns now, bool shortened)
{
    bool warm = trim_pools(h, now);
    trim_heap(h, shortened || (h->warm && !warm));
    h->warm = warm;
}

static void due(struct loop_timer *t)
{
    struct housekeeping *h = LIST_ITEM(t, struct housekeeping, timer);
    struct worker *w = h->worker;
    time_ns now = loop_now(w->loop);
    trim_receive(w);
    /* Objects that a burst left in the loop's lists lie scattered: the heap can only give the pages around them back once they went. */
    bool shortened = slab_trim() >= SLABS_MANY;
    if (w->index == 0) {
        factory_sweep(now);
        trim_process(h, now, shortened);
    } else if (shortened) {
        malloc_trim(0);
    }
    loop_timer_set(w->loop, t, now + PERIOD_NS);
}

void housekeeping_start(struct worker *w)
{
    w->housekeeping = (struct housekeeping){
        .worker = w, .timer = LOOP_TIMER_INIT(due), .trim = LOOP_TIMER_INIT(trim_on)};
    loop_timer_set(w->loop, &w->housekeeping.timer, loop_now(w->loop) + PERIOD_NS);
}
