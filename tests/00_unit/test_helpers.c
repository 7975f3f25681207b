/* net/helpers: jobs by slices on threads of their own, each finished once on its loop. */
#include "net/helpers.h"

#include "base/mem.h"
#include "os/loop.h"
#include "os/thread.h"
#include "support/unit.h"

#include <semaphore.h>

#define JOBS 50u

struct job {
    struct helpers_job base; /* first */
    unsigned slices;         /* to come */
};

static atomic_uint finished; /* orders nothing */
static atomic_uint stepped;
static struct loop *loop;

static bool step(struct helpers_job *j)
{
    struct job *job = (struct job *)j;
    atomic_fetch_add(&stepped, 1);
    return --job->slices == 0;
}

static void finish(struct helpers_job *j)
{
    assert_ptr_equal(loop_current(), loop);
    mem_free(j);
    if (atomic_fetch_add(&finished, 1) + 1 == JOBS)
        loop_stop(loop);
}

static void submit(struct helpers *h, unsigned slices, bool cancelled)
{
    struct job *j = MEM_NEW(struct job);
    j->base.loop = loop;
    j->base.step = step;
    j->base.finish = finish;
    j->slices = slices;
    if (cancelled)
        helpers_cancel(&j->base);
    helpers_submit(h, &j->base);
}

static void begin(void)
{
    unit_succeeds(loop_new(&loop));
    atomic_store(&finished, 0);
    atomic_store(&stepped, 0);
}

static void each_is_finished_once(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads < 4; threads++) { /* 0: where they arise */
        begin();
        struct helpers *h = helpers_new(threads);
        unsigned slices = 0;
        for (unsigned i = 0; i < JOBS; i++) {
            submit(h, i % 7 + 1, false);
            slices += i % 7 + 1;
        }
        loop_run(loop);
        assert_int_equal(finished, JOBS);
        assert_int_equal(stepped, slices);
        helpers_free(h);
        loop_free(loop);
    }
}

static void cancelled_ones_take_no_step(void **state)
{
    (void)state;
    begin();
    struct helpers *h = helpers_new(2);
    for (unsigned i = 0; i < JOBS; i++)
        submit(h, 1000, true);
    loop_run(loop);
    assert_int_equal(finished, JOBS);
    assert_int_equal(stepped, 0);
    helpers_free(h);
    loop_free(loop);
}

/* What is left at the end is finished, too, and soon. */
static void the_end(void **state)
{
    (void)state;
    begin();
    struct helpers *h = helpers_new(1);
    for (unsigned i = 0; i < JOBS; i++)
        submit(h, UINT32_MAX, false);
    helpers_free(h);
    loop_run(loop);
    assert_int_equal(finished, JOBS);
    loop_free(loop);
    helpers_free(NULL);
}

#define LONG_SLICES 200u

/* A job that knows how far it is. */
struct counted {
    struct helpers_job base; /* first */
    unsigned taken;          /* slices */
    unsigned slices;
};

static sem_t all_there;
static unsigned half_done; /* jobs that are past their short slices; the only thread's */
static unsigned most_half_done;
static unsigned long_slices; /* of all, when the short job was over */
static unsigned long_taken;

static bool counted_step(struct helpers_job *j)
{
    struct counted *c = (struct counted *)j;
    sem_wait(&all_there);
    sem_post(&all_there);
    bool is_long = c->slices == LONG_SLICES;
    long_taken += is_long;
    if (++c->taken == HELPERS_SHORT_SLICES + 1 && is_long)
        half_done++;
    if (half_done > most_half_done)
        most_half_done = half_done;
    if (c->taken < c->slices)
        return false;
    if (is_long)
        half_done--;
    else
        long_slices = long_taken;
    return true;
}

/* One thread: of many long jobs no more than one is half done, and a short one that comes last
 * does not wait for them. */
static void long_ones_are_done_one_by_one(void **state)
{
    (void)state;
    begin();
    sem_init(&all_there, 0, 0);
    struct helpers *h = helpers_new(1);
    for (unsigned i = 0; i < JOBS; i++) {
        struct counted *c = MEM_NEW(struct counted);
        c->base.loop = loop;
        c->base.step = counted_step;
        c->base.finish = finish;
        c->slices = i < JOBS - 1 ? LONG_SLICES : 1;
        helpers_submit(h, &c->base);
    }
    sem_post(&all_there);
    loop_run(loop);
    assert_int_equal(most_half_done, 1);
    assert_true(long_slices <= 2 * JOBS * HELPERS_SHORT_SLICES);
    helpers_free(h);
    sem_destroy(&all_there);
    loop_free(loop);
}

UNIT_MAIN(UNIT(each_is_finished_once), UNIT(cancelled_ones_take_no_step), UNIT(the_end),
          UNIT(long_ones_are_done_one_by_one))
