#include "server/housekeeping.h"

#include "os/log_sink.h"
#include "base/slab.h"
#include "infer/factory.h"
#include "os/heap.h"
#include "os/pages.h"
#include "os/pool.h"
#include "server/worker.h"

#include <stdatomic.h>

#define PERIOD_NS  TIME_S(1)
#define TRIM_BYTES ((size_t)4 << 20)  /* of the pools at once, */
#define TRIM_PAUSE TIME_MS(1)         /* then others have their turn */
#define HEAP_MUCH  ((size_t)1 << 20)  /* free bytes that are given back after a second, */
#define HEAP_KEEP  ((size_t)64 << 10) /* that are not worth giving back, */
#define HEAP_WAIT  5u                 /* and seconds that those in between stay */
#define SLABS_MANY 16u                /* objects that are worth a look at the heap */

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

/* How often the first worker trimmed the heap: then the others do their part. Relaxed: who sees
 * it a second late does it a second later. */
static atomic_uint trims;

/* The heap gives back what a burst left: at once when its end is known, and what was freed (a
 * crowd of connections went away) and not asked for again for a while. */
static void trim_heap(struct housekeeping *h, bool over)
{
    size_t idle = heap_free_bytes();
    h->heap_full = idle > h->heap_idle + HEAP_KEEP ? h->heap_full + 1 : 0;
    unsigned wait = idle > h->heap_idle + HEAP_MUCH ? 1 : HEAP_WAIT;
    if (over || h->heap_full > wait) {
        heap_trim();
        atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed);
        h->heap_idle = heap_free_bytes(); /* counts what was given back, too */
        h->heap_full = 0;
    } else if (idle < h->heap_idle) {
        h->heap_idle = idle;
    }
}

static void go_on_soon(struct housekeeping *h)
{
    loop_timer_set(h->worker->loop, &h->trim, loop_now(h->worker->loop) + TRIM_PAUSE);
}

/* Gives back some of what the pools kept warm and goes on soon; returns whether there is
 * anything left. */
static bool trim_pools(struct housekeeping *h)
{
    size_t kept;
    time_ns now = loop_now(h->worker->loop);
    if (pool_trim_some(now > PERIOD_NS ? now - PERIOD_NS : 0, TRIM_BYTES, &kept))
        go_on_soon(h);
    return kept > 0;
}

static void note_freed(struct housekeeping *h, size_t objects)
{
    h->freed += objects;
    if (objects >= SLAB_CLEAR * SLAB_KEEP)
        go_on_soon(h);
}

static void trim_on(struct loop_timer *t)
{
    struct housekeeping *h = LIST_ITEM(t, struct housekeeping, trim);
    note_freed(h, slab_trim_on());
    if (h->worker->index == 0)
        trim_pools(h);
}

/* The pools and the heap of the process are the first worker's business. A burst is over when
 * the pools have cooled down, and when the loop's lists were shortened. */
static void trim_process(struct housekeeping *h, bool shortened)
{
    bool warm = trim_pools(h);
    trim_heap(h, shortened || (h->warm && !warm));
    h->warm = warm;
}

static void follow_trim(struct housekeeping *h, bool shortened)
{
    unsigned now = atomic_load_explicit(&trims, memory_order_relaxed);
    if (shortened || now != h->trims)
        heap_trim();
    h->trims = now;
}

static void housekeeping_due(struct loop_timer *t)
{
    struct housekeeping *h = LIST_ITEM(t, struct housekeeping, timer);
    struct worker *w = h->worker;
    time_ns now = loop_now(w->loop);
    trim_receive(w);
    /* Objects that a burst left in the loop's lists lie scattered: the heap can only give the
     * pages around them back once they went. */
    note_freed(h, slab_trim());
    bool shortened = h->freed >= SLABS_MANY;
    h->freed = 0;
    if (w->index == 0) {
        factory_sweep(now);
        trim_process(h, shortened);
        log_sink_flush(0);
    } else {
        follow_trim(h, shortened);
    }
    loop_timer_set(w->loop, t, now + PERIOD_NS);
}

void housekeeping_start(struct worker *w)
{
    w->housekeeping = (struct housekeeping){
        .worker = w, .timer = LOOP_TIMER_INIT(housekeeping_due), .trim = LOOP_TIMER_INIT(trim_on)};
    loop_timer_set(w->loop, &w->housekeeping.timer, loop_now(w->loop) + PERIOD_NS);
}
