/* os/loop_lane: however many descriptors of a lane are ready, others wait for a few of them;
 * each of them has its turn; a descriptor comes and goes between the lanes. */
#include "os/loop_lane_priv.h"

#include "support/unit.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MEMBERS 64
#define HANDLED 320

static struct loop *loop;

/* A descriptor that stays ready until it is read. */
struct member {
    struct loop_fd w;
    unsigned handled;
};

static struct member members[MEMBERS];
static struct member fast;
static time_ns times[HANDLED]; /* when a member was handled */
static unsigned handled;
static unsigned
    asked; /* how many were handled when `fast` became ready; 0 = it waits for nothing */
static unsigned longest;

static void poke(struct member *m)
{
    uint64_t one = 1;
    assert_int_equal(write(m->w.fd, &one, sizeof(one)), sizeof(one));
}

static void drain(struct member *m)
{
    uint64_t count;
    assert_int_equal(read(m->w.fd, &count, sizeof(count)), sizeof(count));
}

static void watch(struct member *m, void (*ready)(struct loop_fd *w, uint32_t events))
{
    *m = (struct member){.w = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .ready = ready}};
    assert_true(m->w.fd >= 0);
    unit_succeeds(loop_add(loop, &m->w, EPOLLIN));
}

static void forget(struct member *m)
{
    loop_del(loop, &m->w);
    close(m->w.fd);
}

static int make(void **state)
{
    (void)state;
    handled = asked = longest = 0;
    struct err *e = loop_new(&loop);
    err_free(e);
    return e ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static void on_fast(struct loop_fd *w, uint32_t events)
{
    (void)events;
    drain(LIST_ITEM(w, struct member, w));
    if (handled - asked > longest)
        longest = handled - asked;
    asked = 0;
}

/* Asks for the fast one as soon as it has been handled: so it becomes ready at every place of a
 * turn. */
static void on_member(struct loop_fd *w, uint32_t events)
{
    (void)events;
    if (handled == HANDLED)
        return; /* the turn in which the last one was counted goes on */
    struct member *m = LIST_ITEM(w, struct member, w);
    m->handled++;
    times[handled++] = clock_now_ns();
    if (!asked) {
        asked = handled;
        poke(&fast);
    }
    if (handled == HANDLED)
        loop_stop(loop);
}

static void others_wait_for_a_few(enum loop_lane_id lane)
{
    watch(&fast, on_fast);
    for (int i = 0; i < MEMBERS; i++) {
        watch(&members[i], on_member);
        loop_move(loop, &members[i].w, lane);
        assert_int_equal(members[i].w.lane, lane);
        poke(&members[i]);
    }
    loop_run(loop);
    assert_true(longest <= LOOP_LANE_EVENTS);
    /* All have their turns. */
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(members[i].handled, HANDLED / MEMBERS);
        forget(&members[i]);
    }
    forget(&fast);
}

static void others_wait_for_a_few_of_the_busy(void **state)
{
    (void)state;
    others_wait_for_a_few(LOOP_LANE_BUSY);
}

static void others_wait_for_a_few_of_the_slow(void **state)
{
    (void)state;
    others_wait_for_a_few(LOOP_LANE_SLOW);
    /* However fast the machine: between turns the lane rests. */
    for (unsigned i = LOOP_LANE_EVENTS; i < HANDLED; i++)
        assert_true(times[i] - times[i - LOOP_LANE_EVENTS] >= TIME_MS(1));
}

static struct loop_task spare[MEMBERS];

static void on_spare(struct loop_task *t)
{
    if (handled == HANDLED)
        return;
    handled++;
    if (!asked) {
        asked = handled;
        poke(&fast);
    }
    loop_later(loop, LOOP_PHASE_SPARE, t);
    if (handled == HANDLED)
        loop_stop(loop);
}

static void others_wait_for_a_few_spare_tasks(void **state)
{
    (void)state;
    watch(&fast, on_fast);
    for (int i = 0; i < MEMBERS; i++) {
        spare[i] = (struct loop_task){.run = on_spare};
        list_init(&spare[i].node);
        loop_later(loop, LOOP_PHASE_SPARE, &spare[i]);
    }
    loop_run(loop);
    assert_int_equal(handled, HANDLED); /* the loop does not sleep while there is one */
    assert_true(longest > 0 && longest <= LOOP_LANE_EVENTS);
    for (int i = 0; i < MEMBERS; i++)
        loop_task_cancel(&spare[i]);
    forget(&fast);
}

static unsigned left_over;

static void on_left_over(struct loop_task *t)
{
    (void)t;
    left_over++;
}

/* A loop that ends runs what it had no time for. */
static void spare_tasks_of_a_loop_that_ends(void **state)
{
    (void)state;
    left_over = 0;
    struct loop *ends;
    unit_succeeds(loop_new(&ends));
    for (int i = 0; i < MEMBERS; i++) {
        spare[i] = (struct loop_task){.run = on_left_over};
        list_init(&spare[i].node);
        loop_later(ends, LOOP_PHASE_SPARE, &spare[i]);
    }
    loop_stop(ends);
    loop_free(ends);
    assert_int_equal(left_over, MEMBERS);
}

/* A loop that is told to stop does first what was put off: its owners may be gone when it is
 * freed. */
static void spare_tasks_of_a_loop_that_stops(void **state)
{
    (void)state;
    left_over = 0;
    for (int i = 0; i < MEMBERS; i++) {
        spare[i] = (struct loop_task){.run = on_left_over};
        list_init(&spare[i].node);
        loop_later(loop, LOOP_PHASE_SPARE, &spare[i]);
    }
    loop_stop(loop);
    loop_run(loop);
    assert_int_equal(left_over, MEMBERS);
}

static struct member one;

static void on_one(struct loop_fd *w, uint32_t events)
{
    assert_int_equal(events, EPOLLIN);
    drain(LIST_ITEM(w, struct member, w));
    one.handled++;
    loop_stop(loop);
}

static void poke_one(struct loop_timer *t)
{
    (void)t;
    poke(&one);
}

/* Nothing is ready for longer than the lane rests, again and again: each time the loop wakes up
 * for the next. */
static void none_is_forgotten_in(enum loop_lane_id lane)
{
    one.handled = 0;
    watch(&one, on_one);
    loop_move(loop, &one.w, lane);
    struct loop_timer later = LOOP_TIMER_INIT(poke_one);
    for (unsigned i = 1; i <= 5; i++) {
        loop_timer_set(loop, &later, clock_now_ns() + TIME_MS(i));
        loop_run(loop);
        assert_int_equal(one.handled, i);
    }
    forget(&one);
}

static void none_is_forgotten(void **state)
{
    (void)state;
    none_is_forgotten_in(LOOP_LANE_BUSY);
    none_is_forgotten_in(LOOP_LANE_SLOW);
}

static void born_in_a_lane(void **state)
{
    (void)state;
    one = (struct member){.w = {.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                                .lane = LOOP_LANE_BUSY,
                                .ready = on_one}};
    unit_succeeds(loop_add(loop, &one.w, EPOLLIN));
    assert_int_equal(one.w.lane, LOOP_LANE_BUSY);
    poke(&one);
    loop_run(loop);
    assert_int_equal(one.handled, 1);
    forget(&one);
}

static void there_and_back(void **state)
{
    (void)state;
    watch(&one, on_one);
    loop_move(loop, &one.w, LOOP_LANE_FRONT); /* where it is already */
    assert_int_equal(one.w.lane, LOOP_LANE_FRONT);
    static const enum loop_lane_id lanes[] = {
        LOOP_LANE_SLOW, LOOP_LANE_FRONT, LOOP_LANE_BUSY, LOOP_LANE_SLOW,
        LOOP_LANE_BUSY, LOOP_LANE_FRONT, LOOP_LANE_SLOW,
    };
    for (unsigned i = 0; i < sizeof(lanes) / sizeof(*lanes); i++) {
        loop_move(loop, &one.w, lanes[i]);
        assert_int_equal(one.w.lane, lanes[i]);
        loop_mod(loop, &one.w, 0); /* asked in the lane where it is */
        loop_mod(loop, &one.w, EPOLLIN);
        poke(&one);
        loop_run(loop);
        assert_int_equal(one.handled, i + 1);
    }
    forget(&one);
}

static void on_doomed(struct loop_fd *w, uint32_t events)
{
    (void)events;
    handled++;
    for (int i = 0; i < MEMBERS; i++)
        if (&members[i].w != w)
            forget(&members[i]);
    drain(LIST_ITEM(w, struct member, w));
    loop_stop(loop);
}

/* One ends the others that are ready, too: they hear nothing any more. */
static void forgotten_in_the_same_turn(void **state)
{
    (void)state;
    for (int i = 0; i < MEMBERS; i++) {
        watch(&members[i], on_doomed);
        loop_move(loop, &members[i].w, LOOP_LANE_SLOW);
        poke(&members[i]);
    }
    loop_run(loop);
    assert_int_equal(handled, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make, end)

UNIT_MAIN(TEST(others_wait_for_a_few_of_the_busy), TEST(others_wait_for_a_few_of_the_slow),
          TEST(others_wait_for_a_few_spare_tasks), TEST(spare_tasks_of_a_loop_that_ends),
          TEST(spare_tasks_of_a_loop_that_stops), TEST(none_is_forgotten), TEST(born_in_a_lane),
          TEST(there_and_back), TEST(forgotten_in_the_same_turn))
