/* Threads that wait for response caches: each job runs once, so many at a time, and none where no thread can be had. */
#include "base/fault.h"
#include "os/mutex.h"
#include "serve/cache_pool.h"
#include "support/unit.h"

#define JOBS 500

struct job {
    struct cache_pool_job job;
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

static void run(struct cache_pool_job *j)
{
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
    struct cache_pool *p = cache_pool_new();
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.job.run = run};
        assert_true(cache_pool_put(p, &jobs[i].job));
    }
    wait_for(&done, JOBS);
    cache_pool_free(p);
    for (unsigned i = 0; i < JOBS; i++)
        assert_int_equal(jobs[i].runs, 1);
    assert_in_range(most, 1, CACHE_POOL_THREADS);
}

/* Jobs that wait: as many threads as there may be, and the others after them. */
static void test_jobs_that_wait(void **state)
{
    (void)state;
    struct job jobs[2 * CACHE_POOL_THREADS];
    struct cache_pool *p = cache_pool_new();
    set_gate(false);
    for (unsigned i = 0; i < 2 * CACHE_POOL_THREADS; i++) {
        jobs[i] = (struct job){.job.run = run};
        assert_true(cache_pool_put(p, &jobs[i].job));
    }
    wait_for(&running, CACHE_POOL_THREADS);
    assert_int_equal(done, 0);
    set_gate(true);
    wait_for(&done, 2 * CACHE_POOL_THREADS);
    assert_int_equal(most, CACHE_POOL_THREADS);
    cache_pool_free(p);
}

static void test_no_thread(void **state)
{
    (void)state;
    struct job refused = {.job.run = run};
    struct job taken = {.job.run = run};
    struct cache_pool *p = cache_pool_new();
    fault_arm(1);
    bool ran = cache_pool_put(p, &refused.job);
    fault_arm(0);
    assert_false(ran);
    assert_true(cache_pool_put(p, &taken.job));
    wait_for(&done, 1);
    assert_int_equal(refused.runs, 0);
    /* The next thread that cannot be had is no reason to refuse: there is one that gets to it. */
    set_gate(false);
    struct job two[2] = {{.job.run = run}, {.job.run = run}};
    assert_true(cache_pool_put(p, &two[0].job));
    wait_for(&running, 1);
    fault_arm(1);
    ran = cache_pool_put(p, &two[1].job);
    fault_arm(0);
    assert_true(ran);
    set_gate(true);
    wait_for(&done, 3);
    cache_pool_free(p);
    cache_pool_free(NULL);
}

#define TEST(fn) cmocka_unit_test_setup(fn, set_up)
UNIT_MAIN(TEST(test_each_job_once), TEST(test_jobs_that_wait), TEST(test_no_thread))
