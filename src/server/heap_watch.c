#include "server/heap_watch.h"

#include "os/heap.h"

/* More free bytes than this are given back after MUCH_WAIT. */
#define MUCH      ((size_t)1 << 20)
#define MUCH_WAIT TIME_S(1)

/* Fewer than this are not worth giving back. What is between the two is given back later. */
#define LITTLE      ((size_t)64 << 10)
#define LITTLE_WAIT TIME_S(5)

static bool heap_is_full(struct heap_watch *h, time_ns now)
{
    size_t idle = heap_free_bytes();
    if (idle < h->idle)
        h->idle = idle;
    if (idle <= h->idle + LITTLE)
        h->since = 0;
    else if (!h->since)
        h->since = now;
    time_ns wait = idle > h->idle + MUCH ? MUCH_WAIT : LITTLE_WAIT;
    return h->since && now - h->since >= wait;
}

static void heap_watch_give_back(struct heap_watch *h)
{
    heap_give_back();
    h->idle = heap_free_bytes(); /* it also counts pages that were given back */
    h->since = 0;
    h->told = false;
}

bool heap_watch_look(struct heap_watch *h, time_ns now, bool over)
{
    h->over = h->over || over;
    if (now < h->next)
        return false;
    time_ns begun = clock_now_ns();
    if (h->told)
        heap_watch_give_back(h);
    else
        h->told = heap_is_full(h, now) || h->over;
    if (h->told) {
        h->over = false;
        return true;
    }
    h->next = now + time_sooner((clock_now_ns() - begun) * HEAP_WATCH_PART, HEAP_WATCH_REST);
    return false;
}
