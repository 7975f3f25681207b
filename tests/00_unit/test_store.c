/* What the local response cache keeps: the least recently used goes first, and what somebody
 * reads stays until it is given back. */
#include "local/store.h"
#include "support/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BYTES 1000u

static struct store *s;

static int set_up(void **state)
{
    (void)state;
    s = store_new(10 * 1200); /* room for ten of BYTES with what they take besides */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_free(s);
    return 0;
}

static enum store_result put(const char *key, uint64_t bytes, int fill)
{
    struct store_item *item;
    enum store_result result = store_begin(s, key, bytes, &item);
    if (result != STORE_OK)
        return result;
    uint64_t got;
    memset(store_bytes(item, &got), fill, bytes);
    assert_int_equal(got, bytes);
    return store_commit(s, item);
}

static bool has(const char *key, int fill)
{
    struct store_item *item = store_get(s, key);
    if (!item)
        return false;
    uint64_t bytes;
    const uint8_t *data = store_bytes(item, &bytes);
    assert_int_equal((uintptr_t)data % 64, 0);
    for (uint64_t i = 0; i < bytes; i++)
        assert_int_equal(data[i], fill);
    store_put_back(s, item);
    return true;
}

static struct store_counts counts(void)
{
    struct store_counts c;
    store_count(s, &c);
    return c;
}

static void test_keys(void **state)
{
    (void)state;
    assert_false(has("a", 0));
    assert_int_equal(put("a", BYTES, 1), STORE_OK);
    assert_int_equal(put("b", 0, 2), STORE_OK);
    assert_int_equal(put("a", BYTES, 3), STORE_EXISTS);
    assert_true(has("a", 1));
    assert_true(has("b", 2));
    assert_false(has("", 0));
    assert_int_equal(counts().items, 2);
}

static void test_the_least_recently_used_goes(void **state)
{
    (void)state;
    char key[16];
    for (int i = 0; i < 9; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(put(key, BYTES, i), STORE_OK);
    }
    assert_int_equal(counts().evictions, 0);
    assert_true(has("0", 0)); /* now 1 is the oldest */
    assert_int_equal(put("9", BYTES, 9), STORE_OK);
    assert_int_equal(put("10", BYTES, 10), STORE_OK);
    assert_true(has("0", 0));
    assert_false(has("1", 1));
    assert_true(counts().used_bytes <= store_limit(s));
    assert_int_equal(counts().evictions + counts().items, 11);
}

static void test_one_that_is_too_large(void **state)
{
    (void)state;
    assert_int_equal(put("small", BYTES, 1), STORE_OK);
    assert_int_equal(put("large", 12000, 1), STORE_TOO_LARGE);
    assert_int_equal(put("huge", UINT64_MAX, 1), STORE_TOO_LARGE);
    assert_int_equal(put("huge", UINT64_MAX - 100, 1), STORE_TOO_LARGE);
    assert_true(has("small", 1));
    assert_int_equal(put("nearly", 11000, 2), STORE_OK);
    assert_false(has("small", 1));
    assert_true(has("nearly", 2));
    assert_int_equal(counts().items, 1);
}

/* It was evicted while somebody read it: its bytes stay, and count, until that one is done. */
static void test_evicted_while_it_is_read(void **state)
{
    (void)state;
    assert_int_equal(put("old", 11000, 7), STORE_OK);
    struct store_item *item = store_get(s, "old");
    assert_int_equal(put("new", 11000, 8), STORE_NO_MEMORY);
    assert_false(has("old", 7));
    uint64_t bytes;
    const uint8_t *data = store_bytes(item, &bytes);
    assert_int_equal(data[bytes - 1], 7);
    assert_true(counts().used_bytes > 11000);
    store_put_back(s, item);
    assert_int_equal(counts().used_bytes, 0);
    assert_int_equal(put("new", 11000, 8), STORE_OK);
}

static void test_two_fill_one_key(void **state)
{
    (void)state;
    struct store_item *a;
    struct store_item *b;
    assert_int_equal(store_begin(s, "k", BYTES, &a), STORE_OK);
    assert_int_equal(store_begin(s, "k", BYTES, &b), STORE_OK);
    assert_false(has("k", 0));
    uint64_t bytes;
    memset(store_bytes(a, &bytes), 1, BYTES);
    memset(store_bytes(b, &bytes), 2, BYTES);
    assert_int_equal(store_commit(s, b), STORE_OK);
    assert_int_equal(store_commit(s, a), STORE_EXISTS);
    assert_true(has("k", 2));
    assert_int_equal(store_begin(s, "other", BYTES, &a), STORE_OK);
    store_abandon(s, a);
    assert_false(has("other", 0));
    assert_int_equal(counts().items, 1);
}

static void test_many(void **state)
{
    (void)state;
    store_free(s);
    s = store_new(64 << 20);
    char key[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        assert_int_equal(put(key, 8, i & 255), STORE_OK);
    }
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        assert_true(has(key, i & 255));
    }
    assert_int_equal(counts().items, 20000);
}

/* Reads and writes keys of its own choice; what it reads is whole. */
static void *use(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg;
    for (int i = 0; i < 3000; i++) {
        uint64_t n = unit_random(&random);
        char key[16];
        snprintf(key, sizeof(key), "%d", (int)(n % 30));
        if (!has(key, (int)(n % 30)))
            put(key, BYTES, (int)(n % 30));
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(counts().evictions > 0);
    assert_true(counts().used_bytes <= store_limit(s));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
UNIT_MAIN(TEST(test_keys), TEST(test_the_least_recently_used_goes),
          TEST(test_one_that_is_too_large), TEST(test_evicted_while_it_is_read),
          TEST(test_two_fill_one_key), TEST(test_many), TEST(test_threads))
