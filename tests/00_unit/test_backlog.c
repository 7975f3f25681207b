#include "os/backlog.h"

#include "os/thread.h"
#include "support/unit.h"

static struct backlog backlog;
static time_ns waited;

static void add(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        backlog_add(&backlog);
}

static void wait_for_room(void *arg)
{
    (void)arg;
    time_ns begun = clock_now_ns();
    backlog_wait_for_room(&backlog);
    waited = clock_now_ns() - begun;
}

static void few_are_not_waited_for(void **state)
{
    (void)state;
    backlog_init(&backlog);
    add(BACKLOG_MOST);
    backlog_wait_for_room(&backlog);
    assert_false(atomic_load(&backlog.wanted));
    backlog_drop(&backlog, BACKLOG_MOST);
    backlog_fini(&backlog);
}

/* Who waits is woken when few are left, and not earlier. Returns how long it waited. */
static time_ns time_until_woken(void)
{
    struct thread *waiter;
    backlog_init(&backlog);
    add(BACKLOG_MOST + 1);
    unit_succeeds(thread_start("waiter", wait_for_room, NULL, &waiter));
    while (!atomic_load(&backlog.wanted))
        ;
    backlog_drop(&backlog, BACKLOG_MOST - BACKLOG_FEW);
    assert_true(atomic_load(&backlog.wanted));
    backlog_drop(&backlog, 1);
    assert_false(atomic_load(&backlog.wanted));
    thread_join(waiter);
    backlog_fini(&backlog);
    return waited;
}

/* On a busy machine one may be woken late. If nobody were woken each would wait to the end. */
static void who_waits_is_woken(void **state)
{
    (void)state;
    int rounds = 0;
    while (time_until_woken() >= BACKLOG_LONGEST)
        assert_true(++rounds < 1000);
}

static void nobody_waits_for_ever(void **state)
{
    (void)state;
    backlog_init(&backlog);
    add(BACKLOG_MOST + 1);
    wait_for_room(NULL);
    assert_true(waited >= BACKLOG_LONGEST);
    backlog_fini(&backlog);
}

UNIT_MAIN(UNIT(few_are_not_waited_for), UNIT(who_waits_is_woken), UNIT(nobody_waits_for_ever))
