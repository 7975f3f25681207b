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
/* more free heap bytes than this are given back after a second */
#define HEAP_MUCH ((size_t)1 << 20)
/* fewer free heap bytes than this are not worth giving back */
#define HEAP_KEEP ((size_t)64 << 10)
/* seconds after which an amount between the two is given back */
#define HEAP_WAIT  5u
#define SLABS_MANY 16u /* freed objects that justify a check of the heap */

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

/* How often the first worker trimmed the heap; the other workers then trim their part. Relaxed:
 * a worker that sees it late trims a second later. */
static atomic_uint trims;

/* Trims the heap: at once when a burst is known to be over, and when memory that was freed (many
 * connections closed) was not used again for a while. */
static void trim_heap(struct housekeeping *h, bool over)
{
    size_t idle = heap_free_bytes();
    h->heap_full = idle > h->heap_idle + HEAP_KEEP ? h->heap_full + 1 : 0;
    unsigned wait = idle > h->heap_idle + HEAP_MUCH ? 1 : HEAP_WAIT;
    if (over || h->heap_full > wait) {
        heap_trim();
        atomic_fetch_add_explicit(&trims, 1, memory_order_relaxed);
        h->heap_idle = heap_free_bytes(); /* free memory also counts pages that were given back */
        h->heap_full = 0;
    } else if (idle < h->heap_idle) {
        h->heap_idle = idle;
    }
}

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

/* Only the first worker trims the process's pools and heap. A burst is over when the pools have
 * no warm buffers, or when the loop's slab lists were shortened. */
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
    /* Free objects in the loop's lists are scattered over pages. The heap can give such a page
     * back only after they were freed. */
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
