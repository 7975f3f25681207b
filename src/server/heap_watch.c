#include "server/heap_watch.h"

#include "os/heap.h"

/* More idle bytes than this are given back after MUCH_WAIT. */
#define MUCH      ((int64_t)1 << 20)
#define MUCH_WAIT TIME_S(1)

/* Fewer than this are not worth giving back. What is between the two is given back later. */
#define LITTLE      ((int64_t)64 << 10)
#define LITTLE_WAIT TIME_S(5)

/* Memory that is not the heap's may come and go. Each time that nothing went back, the waits
 * double, so many times at most. */
#define DOUBLED_MOST 4

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

static void heap_watch_give_back(struct heap_watch *h)
{
    heap_give_back();
    h->idle = heap_idle_bytes();
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
    if (now < h->next)
        return false;
    time_ns begun = clock_now_ns();
    bool gives = h->told;
    if (gives) {
        heap_watch_give_back(h);
    } else {
        h->full = heap_idle_bytes();
        h->told = heap_is_full(h, now) || h->over;
    }
    if (h->told)
        h->over = false;
    else
        h->next = now + time_sooner((clock_now_ns() - begun) * HEAP_WATCH_PART, HEAP_WATCH_REST);
    return gives || h->told;
}
