#include "isolate/wire/isolate_pool.h"

#include "os/thread.h"
#include "support/unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGES 1000u /* no power of two */
#define BYTES ((uint64_t)PAGES * ISOLATE_POOL_PAGE)

struct memory {
    bool touched[PAGES];
    unsigned forgotten;
};

static void forget(void *owner, uint64_t offset, uint64_t bytes)
{
    struct memory *m = owner;
    assert_true(offset % ISOLATE_POOL_PAGE == 0 && offset + bytes <= BYTES);
    memset(m->touched + offset / ISOLATE_POOL_PAGE, 0, bytes / ISOLATE_POOL_PAGE);
    m->forgotten++;
}

static void places_and_limit(void **state)
{
    (void)state;
    struct memory m = {0};
    struct isolate_pool *p = isolate_pool_new(BYTES, BYTES / 2, forget, &m);
    uint64_t a, b, c;
    assert_true(isolate_pool_take(p, 1, &a));
    assert_true(isolate_pool_take(p, ISOLATE_POOL_PAGE + 1, &b));
    assert_true(a != b && b % (2u * ISOLATE_POOL_PAGE) == 0);
    assert_int_equal(isolate_pool_used(p), ISOLATE_POOL_PAGE + 2);
    assert_false(isolate_pool_take(p, BYTES / 2, &c)); /* over the limit */
    assert_false(isolate_pool_take(p, UINT64_MAX, &c));
    isolate_pool_give(p, b, 10);
    isolate_pool_give(p, a, 20);
    assert_int_equal(isolate_pool_used(p), 0);
    assert_true(isolate_pool_take(p, BYTES / 2, &c)); /* joined again */
    assert_false(isolate_pool_take(p, 1, &a));
    isolate_pool_give(p, c, 30);
    isolate_pool_free(p);
}

static void idle_memory_goes_back(void **state)
{
    (void)state;
    struct memory m = {0};
    struct isolate_pool *p = isolate_pool_new(BYTES, BYTES, forget, &m);
    uint64_t a, b, again;
    assert_false(isolate_pool_trim(p, TIME_NEVER)); /* nothing was ever used */
    assert_int_equal(m.forgotten, 0);
    assert_true(isolate_pool_take(p, 5 * ISOLATE_POOL_PAGE, &a));
    assert_true(isolate_pool_take(p, 3 * ISOLATE_POOL_PAGE, &b));
    isolate_pool_give(p, a, 1000);
    assert_true(isolate_pool_take(p, 6 * ISOLATE_POOL_PAGE, &again));
    assert_int_equal(again, a); /* warm */
    isolate_pool_give(p, a, 2000);
    assert_true(isolate_pool_trim(p, 1500)); /* used since */
    assert_int_equal(m.forgotten, 0);
    assert_false(isolate_pool_trim(p, 2001));
    assert_true(m.forgotten > 0);
    isolate_pool_give(p, b, 3000);
    assert_false(isolate_pool_trim(p, 3001));
    unsigned before = m.forgotten;
    assert_false(isolate_pool_trim(p, TIME_NEVER)); /* once is enough */
    assert_int_equal(m.forgotten, before);
    isolate_pool_free(p);
}

/* Whatever is taken and given back: no two places overlap, and in the end all of it can be had
 * again. */
static void random_places(void **state)
{
    (void)state;
    static struct {
        uint64_t offset, bytes;
    } taken[200];
    static uint8_t owner[PAGES];
    struct memory m = {0};
    uint64_t seed = 7;
    struct isolate_pool *p = isolate_pool_new(BYTES, BYTES, forget, &m);
    memset(taken, 0, sizeof(taken));
    memset(owner, 0, sizeof(owner));
    for (unsigned step = 0; step < 100000; step++) {
        unsigned i = (unsigned)(unit_random(&seed) % 200);
        if (taken[i].bytes) {
            memset(owner + taken[i].offset / ISOLATE_POOL_PAGE, 0,
                   (taken[i].bytes - 1) / ISOLATE_POOL_PAGE + 1);
            isolate_pool_give(p, taken[i].offset, step);
            taken[i].bytes = 0;
            continue;
        }
        uint64_t bytes = unit_random(&seed) % (16u * ISOLATE_POOL_PAGE) + 1;
        if (!isolate_pool_take(p, bytes, &taken[i].offset))
            continue;
        taken[i].bytes = bytes;
        for (uint64_t k = 0; k <= (bytes - 1) / ISOLATE_POOL_PAGE; k++) {
            uint8_t *o = &owner[taken[i].offset / ISOLATE_POOL_PAGE + k];
            assert_int_equal(*o, 0);
            *o = 1;
        }
        if (step % 1000 == 0)
            isolate_pool_trim(p, step > 500 ? step - 500 : 0);
    }
    for (unsigned i = 0; i < 200; i++)
        if (taken[i].bytes)
            isolate_pool_give(p, taken[i].offset, 0);
    uint64_t all;
    assert_int_equal(isolate_pool_used(p), 0);
    assert_true(isolate_pool_take(p, 512u * ISOLATE_POOL_PAGE, &all));
    isolate_pool_give(p, all, 0);
    isolate_pool_free(p);
}

struct request {
    struct isolate_pool *pool;
    struct thread *thread; /* takes a place while the memory of that place goes back */
    atomic_int tid;        /* of it, from when it asks */
    atomic_bool over;
    bool taken;
    uint64_t offset;
    unsigned forgotten;
};

#define MANY_BYTES ((uint64_t)4096 * ISOLATE_POOL_PAGE)

static void take_all(void *arg)
{
    struct request *r = arg;
    atomic_store(&r->tid, gettid());
    r->taken = isolate_pool_take(r->pool, MANY_BYTES, &r->offset);
    atomic_store(&r->over, true);
}

static bool sleeps(int tid)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(line, 1, sizeof(line) - 1, f);
    fclose(f);
    line[n] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

static void forget_while_asked(void *owner, uint64_t offset, uint64_t bytes)
{
    struct request *r = owner;
    (void)offset;
    assert_true(bytes < MANY_BYTES);
    if (r->forgotten++)
        return;
    unit_succeeds(thread_start("taker", take_all, r, &r->thread));
    while (!atomic_load(&r->over) && !(atomic_load(&r->tid) && sleeps(atomic_load(&r->tid))))
        ;
}

/* A place whose memory goes back is no place in use: who needs it waits for one step of that. */
static void taken_while_it_goes_back(void **state)
{
    (void)state;
    struct request r = {0};
    uint64_t a;
    r.pool = isolate_pool_new(MANY_BYTES, MANY_BYTES, forget_while_asked, &r);
    assert_true(isolate_pool_take(r.pool, MANY_BYTES, &a));
    isolate_pool_give(r.pool, a, 10);
    assert_true(isolate_pool_trim(r.pool, 11)); /* the rest stays warm */
    thread_join(r.thread);
    assert_true(r.taken);
    assert_int_equal(r.forgotten, 1);
    assert_false(isolate_pool_trim(r.pool, TIME_NEVER)); /* it is in use */
    isolate_pool_give(r.pool, r.offset, 20);
    assert_false(isolate_pool_trim(r.pool, 21));
    assert_int_equal(r.forgotten, 5);
    assert_true(isolate_pool_take(r.pool, MANY_BYTES, &a));
    isolate_pool_give(r.pool, a, 30);
    isolate_pool_free(r.pool);
}

UNIT_MAIN(UNIT(places_and_limit), UNIT(idle_memory_goes_back), UNIT(random_places),
          UNIT(taken_while_it_goes_back))
