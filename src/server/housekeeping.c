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
#define TRIM_BYTES ((size_t)4 << 20) /* the most bytes that the pools give back at once */
#define TRIM_PAUSE TIME_MS(1)        /* pause between such steps, so that others have their turn */
#define SLABS_MANY 16u               /* freed objects that justify a check of the heap */

/* Gives the receive buffer's pages back when little was received for a second. */
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

/* How often the first worker told all to empty what the heap keeps for their threads, or next to
 * shorten its end: the first is odd. Relaxed: a worker that sees it late does so a second later. */
static atomic_uint told;

/* Set by a worker whose slab lists were shortened: a burst is over. Taken by the first. */
static atomic_bool burst_over;

static void go_on_soon(struct housekeeping *h)
{
    loop_timer_set(h->worker->loop, &h->trim, loop_now(h->worker->loop) + TRIM_PAUSE);
}

/* Gives back some of the pools' warm buffers, and continues soon. Returns true if some are left. */
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

/* Only the first worker looks at what the process shares: the pools and the heap. A burst is also
 * over when the pools have no warm buffers any more. */
static void trim_process(struct housekeeping *h, time_ns now)
{
    bool warm = trim_pools(h);
    bool over = atomic_exchange_explicit(&burst_over, false, memory_order_relaxed);
    if (heap_watch_look(&h->heap, now, over || (h->warm && !warm)))
        atomic_fetch_add_explicit(&told, 1, memory_order_relaxed);
    h->warm = warm;
}

static void empty_own_if_told(struct housekeeping *h)
{
    unsigned now = atomic_load_explicit(&told, memory_order_relaxed);
    if (now == h->told + 1 && now % 2 == 0)
        heap_shorten_own();
    else if (now != h->told)
        heap_empty_own();
    h->told = now;
}

static void housekeeping_due(struct loop_timer *t)
{
    struct housekeeping *h = LIST_ITEM(t, struct housekeeping, timer);
    struct worker *w = h->worker;
    time_ns now = loop_now(w->loop);
    trim_receive(w);
    /* Free objects in the loop's lists are scattered over pages. The heap can give such a page
     * back only after they were freed. */
    note_freed(h, slab_trim());
    if (h->freed >= SLABS_MANY)
        atomic_store_explicit(&burst_over, true, memory_order_relaxed);
    h->freed = 0;
    if (w->index == 0) {
        factory_sweep(now);
        trim_process(h, now);
        log_sink_flush(0);
    }
    empty_own_if_told(h);
    loop_timer_set(w->loop, t, now + PERIOD_NS);
}

void housekeeping_start(struct worker *w)
{
    w->housekeeping = (struct housekeeping){
        .worker = w, .timer = LOOP_TIMER_INIT(housekeeping_due), .trim = LOOP_TIMER_INIT(trim_on)};
    loop_timer_set(w->loop, &w->housekeeping.timer, loop_now(w->loop) + PERIOD_NS);
}

void housekeeping_end(struct worker *w)
{
    heap_watch_end(&w->housekeeping.heap);
}
