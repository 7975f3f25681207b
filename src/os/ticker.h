#pragma once
/* Wakes a loop at a time to the microsecond, where the loop's own timers round up to a millisecond.
 * A descriptor each, so for few. The loop's thread only. */
#include "base/err.h"
#include "os/loop.h"

/* Embedded in its owner. */
struct ticker {
    struct loop_fd watch;
    struct loop *loop;
    void (*due)(struct ticker *t);
};

/* ticker_open - watch the clock in a loop; nothing is set yet. */
struct err *ticker_open(struct ticker *t, struct loop *l, void (*due)(struct ticker *t));

/* ticker_set - call `due` once at a time, which may be past, in place of what was set. */
void ticker_set(struct ticker *t, time_ns when);

/* ticker_close - all zeros is fine too: then it was never opened. */
void ticker_close(struct ticker *t);
