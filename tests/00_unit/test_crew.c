/* os/crew: each job runs once, so many at a time, and none where no thread can be had. */
#include "os/crew.h"

#include "base/fault.h"
#include "os/mutex.h"
#include "support/unit.h"

#include <stdatomic.h>
#include <unistd.h>

#define JOBS 500
#define MOST 8u

/* That begun and did not end. */
static atomic_uint threads;

static void *begin(void *owner)
{
    atomic_fetch_add(&threads, 1);
    return owner;
}

static void end(void *owner, void *own)
{
    assert_ptr_equal(own, owner);
    atomic_fetch_sub(&threads, 1);
}

static const struct crew_kind kind = {
    .name = "crew", .most = MOST, .idle = TIME_S(10), .begin = begin, .end = end};

struct job {
    struct crew_job job;
    unsigned runs;
};

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct mutex_cond changed;
static unsigned running;
static unsigned most;
static unsigned done;
static bool open_gate;

static int set_up(void **state)
{
    (void)state;
    mutex_cond_init(&changed);
    running = most = done = 0;
    open_gate = true;
    return 0;
}

static void run(struct crew_job *j, void *own)
{
    assert_ptr_equal(own, &threads);
    mutex_lock(&lock);
    ((struct job *)j)->runs++;
    running++;
    most = running > most ? running : most;
    mutex_cond_broadcast(&changed);
    while (!open_gate)
        mutex_cond_wait(&changed, &lock);
    running--;
    done++;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

static void wait_for(const unsigned *count, unsigned value)
{
    mutex_lock(&lock);
    while (*count != value)
        mutex_cond_wait(&changed, &lock);
    mutex_unlock(&lock);
}

static void set_gate(bool is_open)
{
    mutex_lock(&lock);
    open_gate = is_open;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

static void test_each_job_once(void **state)
{
    (void)state;
    static struct job jobs[JOBS];
    struct crew *c = crew_new(&kind, &threads);
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.job.run = run};
        assert_true(crew_add(c, &jobs[i].job));
    }
    wait_for(&done, JOBS);
    crew_free(c);
    for (unsigned i = 0; i < JOBS; i++)
        assert_int_equal(jobs[i].runs, 1);
    assert_in_range(most, 1, MOST);
}

/* Jobs that wait: as many threads as there may be, and the others after them. */
static void test_jobs_that_wait(void **state)
{
    (void)state;
    struct job jobs[2 * MOST];
    struct crew *c = crew_new(&kind, &threads);
    set_gate(false);
    for (unsigned i = 0; i < 2 * MOST; i++) {
        jobs[i] = (struct job){.job.run = run};
        assert_true(crew_add(c, &jobs[i].job));
    }
    wait_for(&running, MOST);
    assert_int_equal(done, 0);
    set_gate(true);
    wait_for(&done, 2 * MOST);
    assert_int_equal(most, MOST);
    crew_free(c);
}

/* Threads that a burst started end, also while there is always a job for one. */
static void test_a_burst_is_over(void **state)
{
    (void)state;
    struct job burst[MOST];
    struct crew_kind soon = kind;
    soon.idle = TIME_MS(100);
    struct crew *c = crew_new(&soon, &threads);
    set_gate(false);
    for (unsigned i = 0; i < MOST; i++) {
        burst[i] = (struct job){.job.run = run};
        assert_true(crew_add(c, &burst[i].job));
    }
    wait_for(&running, MOST);
    set_gate(true);
    wait_for(&done, MOST);
    time_ns until = clock_now_ns() + TIME_S(20);
    for (unsigned count = MOST; atomic_load(&threads) > 2 && clock_now_ns() < until;) {
        struct job one = {.job.run = run};
        assert_true(crew_add(c, &one.job));
        wait_for(&done, ++count);
        usleep(1000); /* allowed: it waits for its next job meanwhile, else another one is called */
    }
    assert_in_range(atomic_load(&threads), 0, 2);
    crew_free(c);
}

static void test_no_thread(void **state)
{
    (void)state;
    struct job refused = {.job.run = run};
    struct job taken = {.job.run = run};
    struct crew *c = crew_new(&kind, &threads);
    fault_arm(1);
    bool ran = crew_add(c, &refused.job);
    fault_arm(0);
    assert_false(ran);
    assert_int_equal(refused.runs, 0);
    fault_arm(1);
    crew_do(c, &refused.job); /* here, then */
    fault_arm(0);
    assert_int_equal(refused.runs, 1);
    assert_int_equal(atomic_load(&threads), 0);
    assert_true(crew_add(c, &taken.job));
    wait_for(&done, 2);
    /* The next thread that cannot be had is no reason to refuse: there is one that gets to it. */
    set_gate(false);
    struct job two[2] = {{.job.run = run}, {.job.run = run}};
    assert_true(crew_add(c, &two[0].job));
    wait_for(&running, 1);
    fault_arm(1);
    ran = crew_add(c, &two[1].job);
    fault_arm(0);
    assert_true(ran);
    set_gate(true);
    wait_for(&done, 4);
    crew_free(c);
    assert_int_equal(atomic_load(&threads), 0);
    crew_free(NULL);
}

/* A job that goes on as another one, while the crew is freed. */
static struct crew *freed;
static struct job second;

static void run_first(struct crew_job *j, void *own)
{
    run(j, own);
    crew_do(freed, &second.job);
}

static void test_jobs_that_jobs_add(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct job first = {.job.run = run_first};
        second = (struct job){.job.run = run};
        freed = crew_new(&kind, &threads);
        assert_true(crew_add(freed, &first.job));
        crew_free(freed);
        assert_int_equal(second.runs, 1);
        assert_int_equal(atomic_load(&threads), 0);
    }
}

#define TEST(fn) cmocka_unit_test_setup(fn, set_up)
UNIT_MAIN(TEST(test_each_job_once), TEST(test_jobs_that_wait), TEST(test_a_burst_is_over),
          TEST(test_no_thread), TEST(test_jobs_that_jobs_add))
