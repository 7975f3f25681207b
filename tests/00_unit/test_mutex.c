#include "os/mutex.h"

#include "os/thread.h"
#include "support/unit.h"

struct shared {
    struct mutex lock;
    struct mutex_cond changed;
    long count;
    bool go;
};

static struct shared shared;

static int make(void **state)
{
    (void)state;
    shared = (struct shared){0};
    mutex_init(&shared.lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&shared.changed);
    return 0;
}

static int end(void **state)
{
    (void)state;
    mutex_cond_fini(&shared.changed);
    mutex_fini(&shared.lock);
    return 0;
}

static void count_up(void *arg)
{
    (void)arg;
    mutex_lock(&shared.lock);
    while (!shared.go)
        mutex_cond_wait(&shared.changed, &shared.lock);
    mutex_unlock(&shared.lock);
    for (int i = 0; i < 5000; i++) {
        mutex_lock(&shared.lock);
        mutex_assert_held(&shared.lock);
        shared.count++;
        mutex_unlock(&shared.lock);
    }
}

static void one_at_a_time(void **state)
{
    (void)state;
    struct thread *threads[4];
    for (int i = 0; i < 4; i++)
        unit_succeeds(thread_start("count", count_up, NULL, &threads[i]));
    mutex_lock(&shared.lock);
    shared.go = true;
    mutex_cond_broadcast(&shared.changed);
    mutex_unlock(&shared.lock);
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    assert_int_equal(shared.count, 20000);
}

static void set_go(void *arg)
{
    (void)arg;
    mutex_lock(&shared.lock);
    shared.go = true;
    mutex_cond_signal(&shared.changed);
    mutex_unlock(&shared.lock);
}

static void waiting_until(void **state)
{
    (void)state;
    struct thread *t;
    mutex_lock(&shared.lock);
    assert_false(mutex_cond_wait_until(&shared.changed, &shared.lock, 1)); /* long over */
    time_ns soon = clock_now_ns() + TIME_MS(2);
    while (mutex_cond_wait_until(&shared.changed, &shared.lock, soon))
        ;
    assert_true(clock_now_ns() >= soon);
    unit_succeeds(thread_start("go", set_go, NULL, &t));
    while (!shared.go)
        assert_true(mutex_cond_wait_until(&shared.changed, &shared.lock, TIME_NEVER));
    mutex_unlock(&shared.lock);
    thread_join(t);
}

/* Two take turns: each tells the other and then waits itself, under one lock. */
struct table {
    struct mutex lock;
    struct mutex_cond turn[2];
    int next; /* whose turn it is */
    int left;
};

static struct table table;

static void play(int me)
{
    mutex_lock(&table.lock);
    while (table.left > 0) {
        if (table.next != me) {
            mutex_cond_wait(&table.turn[me], &table.lock);
            continue;
        }
        table.left--;
        table.next = !me;
        mutex_cond_signal(&table.turn[!me]);
    }
    mutex_cond_signal(&table.turn[!me]);
    mutex_unlock(&table.lock);
}

static void play_first(void *arg)
{
    (void)arg;
    play(0);
}

static void in_turn(void **state)
{
    (void)state;
    struct thread *t;
    table = (struct table){.lock = MUTEX_INIT(MUTEX_RANK_LEAF), .left = 20000};
    mutex_cond_init(&table.turn[0]);
    mutex_cond_init(&table.turn[1]);
    unit_succeeds(thread_start("play", play_first, NULL, &t));
    play(1);
    thread_join(t);
    assert_int_equal(table.left, 0);
}

#define CROWD 6

/* Each waits for a go of its own kind; a go is for one. */
struct crowd {
    struct mutex lock;
    struct mutex_cond go[2];
    int granted[2];
    int waiting;
    struct mutex_cond arrived;
};

static struct crowd crowd;

static void wait_for_go(void *arg)
{
    int kind = *(const int *)arg;
    mutex_lock(&crowd.lock);
    crowd.waiting++;
    mutex_cond_signal(&crowd.arrived);
    while (!crowd.granted[kind])
        mutex_cond_wait(&crowd.go[kind], &crowd.lock);
    crowd.granted[kind]--;
    mutex_unlock(&crowd.lock);
}

/* As many wake up as were told, of several conditions too, when the lock is opened once. */
static void told_together(void **state)
{
    (void)state;
    static const int kinds[2] = {0, 1};
    struct thread *threads[CROWD];
    crowd = (struct crowd){.lock = MUTEX_INIT(MUTEX_RANK_LEAF)};
    mutex_cond_init(&crowd.go[0]);
    mutex_cond_init(&crowd.go[1]);
    mutex_cond_init(&crowd.arrived);
    for (int i = 0; i < CROWD; i++)
        unit_succeeds(
            thread_start("crowd", wait_for_go, (void *)(uintptr_t)&kinds[i % 2], &threads[i]));
    mutex_lock(&crowd.lock);
    while (crowd.waiting < CROWD)
        mutex_cond_wait(&crowd.arrived, &crowd.lock);
    for (int i = 0; i < CROWD; i++) {
        crowd.granted[i % 2]++;
        mutex_cond_signal(&crowd.go[i % 2]);
    }
    mutex_unlock(&crowd.lock);
    for (int i = 0; i < CROWD; i++)
        thread_join(threads[i]);
    assert_int_equal(crowd.granted[0] + crowd.granted[1], 0);
}

#ifdef NEREID_DEBUG
static void told_without_the_lock(void *arg)
{
    (void)arg;
    shared.changed.waiting = 1;
    shared.changed.mutex = &shared.lock;
    mutex_cond_signal(&shared.changed);
}

static void falling_ranks(void *arg)
{
    (void)arg;
    struct mutex outer = MUTEX_INIT(MUTEX_RANK_MODEL);
    struct mutex inner = MUTEX_INIT(MUTEX_RANK_SCHEDULER);
    mutex_lock(&inner);
    mutex_lock(&outer);
}

static void equal_ranks(void *arg)
{
    (void)arg;
    struct mutex a = MUTEX_INIT(MUTEX_RANK_MODEL);
    struct mutex b = MUTEX_INIT(MUTEX_RANK_MODEL);
    mutex_lock(&a);
    mutex_lock(&b);
}

static void not_held(void *arg)
{
    (void)arg;
    mutex_assert_held(&shared.lock);
}

static void ranks_rise(void **state)
{
    (void)state;
    struct mutex outer = MUTEX_INIT(MUTEX_RANK_MODEL);
    struct mutex inner = MUTEX_INIT(MUTEX_RANK_SCHEDULER);
    mutex_lock(&outer);
    mutex_lock(&inner);
    mutex_unlock(&inner);
    mutex_unlock(&outer);
    assert_true(unit_dies(falling_ranks, NULL));
    assert_true(unit_dies(equal_ranks, NULL));
    assert_true(unit_dies(not_held, NULL));
    assert_true(unit_dies(told_without_the_lock, NULL));
}
#define DEBUG_UNITS , cmocka_unit_test_setup_teardown(ranks_rise, make, end)
#else
#define DEBUG_UNITS
#endif

UNIT_MAIN(cmocka_unit_test_setup_teardown(one_at_a_time, make, end),
          cmocka_unit_test_setup_teardown(waiting_until, make, end), UNIT(in_turn),
          UNIT(told_together) DEBUG_UNITS)
