/* net/helpers: jobs by slices on threads of their own, each finished once on its loop. */
#include "net/helpers.h"

#include "base/mem.h"
#include "os/loop.h"
#include "os/thread.h"
#include "support/unit.h"

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

UNIT_MAIN(UNIT(each_is_finished_once), UNIT(cancelled_ones_take_no_step), UNIT(the_end))
