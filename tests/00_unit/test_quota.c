/* server/quota: one budget of connections for all listeners, and a share for each. */
#include "server/quota.h"

#include "os/process/process.h"
#include "os/thread.h"
#include "support/unit.h"

#include <stdatomic.h>
#include <sys/resource.h>

static void set_limit(rlim_t n)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* So that there is room for this many connections. */
static void set_room(uint32_t places)
{
    set_limit(process_fds().open + places + QUOTA_RESERVE);
}

/* Takes places until there are none, and gives the last one back. */
static uint32_t take_all(uint32_t kept, uint32_t before)
{
    while (quota_take(kept, before))
        before++;
    quota_give(kept, before + 1);
    return before;
}

/* Of the places that are kept for none. */
static void shared_is(uint64_t taken, uint64_t limit)
{
    uint64_t now, most;
    quota_shared(&now, &most);
    assert_int_equal(now, taken);
    assert_int_equal(most, limit);
}

static void each_listener_has_a_share_and_the_first_the_rest(void **state)
{
    (void)state;
    set_room(400);
    uint32_t a = quota_open(), b = quota_open(), c = quota_open();
    assert_int_equal(a, 50);
    assert_int_equal(b, 50);
    assert_int_equal(c, 50);
    assert_int_equal(take_all(a, 0), 300);
    shared_is(250, 250);
    assert_int_equal(take_all(b, 0), 50);
    assert_int_equal(take_all(c, 20), 50);
    for (uint32_t n = 300; n > 290; n--)
        quota_give(a, n);
    shared_is(240, 250);
    assert_int_equal(take_all(b, 50), 60);
    for (uint32_t n = 290; n > 0; n--)
        quota_give(a, n);
    assert_int_equal(take_all(c, 50), 290);
    for (uint32_t n = 290; n > 0; n--)
        quota_give(c, n);
    for (uint32_t n = 60; n > 0; n--)
        quota_give(b, n);
    shared_is(0, 250);
    quota_close(c);
    shared_is(0, 300);
    assert_int_equal(take_all(b, 0), 350);
    for (uint32_t n = 350; n > 0; n--)
        quota_give(b, n);
    quota_close(b);
    quota_close(a);
    shared_is(0, 0);
}

static void little_room_is_halved_and_many_listeners_get_what_is_there(void **state)
{
    (void)state;
    set_limit(process_fds().open + QUOTA_RESERVE);
    uint32_t kept[20];
    uint32_t sum = 0;
    for (int i = 0; i < 20; i++)
        sum += kept[i] = quota_open();
    assert_int_equal(sum, QUOTA_RESERVE / 2);
    assert_int_equal(kept[19], 0);
    assert_false(quota_take(kept[19], 0));
    quota_give(kept[19], 1);
    for (int i = 0; i < 20; i++)
        quota_close(kept[i]);
}

#define THREADS 3
#define ROUNDS  20000

struct door {
    atomic_uint connections;
    uint32_t kept;
};

/* One connection comes and goes again and again, as several workers have it at one listener. */
static void come_and_go(void *arg)
{
    struct door *d = arg;
    for (int i = 0; i < ROUNDS; i++) {
        (void)quota_take(d->kept, atomic_fetch_add(&d->connections, 1));
        quota_give(d->kept, atomic_fetch_sub(&d->connections, 1));
    }
}

/* Where the share ends and nothing else is left. */
static void no_place_is_lost_or_found_by_refusals(void **state)
{
    (void)state;
    set_room(400);
    uint32_t other = quota_open();
    struct door d = {.kept = quota_open()};
    assert_int_equal(take_all(other, 0), 350);
    atomic_store(&d.connections, d.kept - 1);
    struct thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        unit_succeeds(thread_start("come", come_and_go, &d, &threads[i]));
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    assert_int_equal(atomic_load(&d.connections), d.kept - 1);
    assert_int_equal(take_all(d.kept, d.kept - 1), d.kept);
    quota_close(d.kept);
    for (uint32_t n = 350; n > 0; n--)
        quota_give(other, n);
    quota_close(other);
}

UNIT_MAIN(UNIT(each_listener_has_a_share_and_the_first_the_rest),
          UNIT(little_room_is_halved_and_many_listeners_get_what_is_there),
          UNIT(no_place_is_lost_or_found_by_refusals))
