#include "isolate/wire/isolate_pool.h"

#include "support/unit.h"

#include <string.h>

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

UNIT_MAIN(UNIT(places_and_limit), UNIT(idle_memory_goes_back), UNIT(random_places))
