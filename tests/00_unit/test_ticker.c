/* os/ticker: it wakes its loop once for each time that is set, and never early. */
#include "os/ticker.h"

#include "support/unit.h"

struct wakes {
    struct ticker ticker;
    struct loop *loop;
    time_ns when;
    unsigned count;
};

static void wakes_due(struct ticker *t)
{
    struct wakes *w = LIST_ITEM(t, struct wakes, ticker);
    assert_true(clock_now_ns() >= w->when);
    if (++w->count == 3) {
        loop_stop(w->loop);
        return;
    }
    w->when = clock_now_ns() + TIME_US(w->count == 1 ? 0 : 300);
    ticker_set(t, w->when);
}

static void wakes_when_it_is_time(void **state)
{
    (void)state;
    struct wakes w = {0};
    unit_succeeds(loop_new(&w.loop));
    unit_succeeds(ticker_open(&w.ticker, w.loop, wakes_due));
    w.when = clock_now_ns() - TIME_S(1);
    ticker_set(&w.ticker, w.when);
    loop_run(w.loop);
    assert_int_equal(w.count, 3);
    ticker_close(&w.ticker);
    ticker_close(&w.ticker);
    loop_free(w.loop);
}

UNIT_MAIN(UNIT(wakes_when_it_is_time))
