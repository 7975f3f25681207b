#include "server/heap_watch.h"

#include "os/heap.h"
#include "os/thread.h"

#include <stddef.h>

/* More idle bytes than this are given back after MUCH_WAIT. */
#define MUCH      ((int64_t)1 << 20)
#define MUCH_WAIT TIME_S(1)

/* Fewer than this are not worth giving back. What is between the two is given back later. */
#define LITTLE      ((int64_t)64 << 10)
#define LITTLE_WAIT TIME_S(5)

/* Memory that is not the heap's may come and go. Each time that nothing went back, the waits
 * double, so many times at most. */
#define DOUBLED_MOST 4

/* What took longer the last time is worth a thread of its own; to give back always is. */
#define LONG TIME_US(200)

static bool heap_is_full(struct heap_watch *h, time_ns now)
{
    if (h->full < h->idle)
        h->idle = h->full;
    if (h->full <= h->idle + LITTLE)
        h->since = 0;
    else if (!h->since)
        h->since = now;
    time_ns wait = (h->full > h->idle + MUCH ? MUCH_WAIT : LITTLE_WAIT) << h->doubled;
    return h->since && now - h->since >= wait;
}

/* Looks at the heap, and gives back what is idle first if that was told. */
static void heap_watch_work(void *arg)
{
    struct heap_watch *h = arg;
    time_ns begun = clock_thread_ns();
    if (h->told)
        heap_give_back();
    h->seen = heap_idle_bytes();
    h->took = clock_thread_ns() - begun;
    atomic_store_explicit(&h->done, true, memory_order_release);
}

/* Returns false if a thread works on it, and the result is not there yet. */
static bool heap_watch_worked(struct heap_watch *h)
{
    if (!h->helper && (h->told || h->took > LONG)) {
        atomic_store_explicit(&h->done, false, memory_order_relaxed);
        struct err *e = thread_start("heap", heap_watch_work, h, &h->helper);
        if (!e)
            return false;
        err_free(e);
    }
    if (!h->helper)
        heap_watch_work(h);
    else if (!atomic_load_explicit(&h->done, memory_order_acquire))
        return false;
    heap_watch_end(h);
    return true;
}

static void heap_watch_gave_back(struct heap_watch *h)
{
    h->idle = h->seen;
    if (h->full - h->idle >= LITTLE)
        h->doubled = 0;
    else if (h->doubled < DOUBLED_MOST)
        h->doubled++;
    h->since = 0;
    h->told = false;
}

bool heap_watch_look(struct heap_watch *h, time_ns now, bool over)
{
    h->over = h->over || over;
    if (now < h->next || !heap_watch_worked(h))
        return false;
    bool gave = h->told;
    if (gave) {
        heap_watch_gave_back(h);
    } else {
        h->full = h->seen;
        h->told = heap_is_full(h, now) || h->over;
    }
    if (h->told)
        h->over = false;
    else
        h->next = now + time_sooner(h->took * HEAP_WATCH_PART, HEAP_WATCH_REST);
    return gave || h->told;
}

void heap_watch_end(struct heap_watch *h)
{
    thread_join(h->helper);
    h->helper = NULL;
}
