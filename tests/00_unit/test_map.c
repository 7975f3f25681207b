#include "base/map.h"

#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define KEYS 500

static void put_get_remove(void **state)
{
    (void)state;
    struct map m = MAP_INIT;
    int one = 1;
    int two = 2;
    assert_null(map_get(&m, "a", 1));
    assert_null(map_remove(&m, "a", 1));
    assert_null(map_put(&m, "a", 1, &one));
    assert_ptr_equal(map_put(&m, "a", 1, &two), &one);
    assert_ptr_equal(map_get(&m, "a", 1), &two);
    assert_null(map_get(&m, "ab", 2));
    assert_int_equal(m.count, 1);
    assert_ptr_equal(map_remove(&m, "a", 1), &two);
    assert_null(map_get(&m, "a", 1));
    assert_int_equal(m.count, 0);
    map_fini(&m);
}

static void keys_are_bytes(void **state)
{
    (void)state;
    struct map m = MAP_INIT;
    int values[3];
    map_put(&m, "", 0, &values[0]);
    map_put(&m, "a\0b", 3, &values[1]);
    map_put(&m, "a", 1, &values[2]);
    assert_ptr_equal(map_get(&m, "", 0), &values[0]);
    assert_ptr_equal(map_get(&m, "a\0b", 3), &values[1]);
    assert_ptr_equal(map_get(&m, "a", 1), &values[2]);
    map_fini(&m);
}

/* Against a plain array, with many removals: the places they leave must neither hide keys nor
 * fill the table. */
static void random_changes(void **state)
{
    (void)state;
    struct map m = MAP_INIT;
    static int values[KEYS];
    int *there[KEYS] = {0};
    size_t count = 0;
    uint64_t rng = 5;
    for (int step = 0; step < 50000; step++) {
        size_t k = unit_random(&rng) % KEYS;
        char key[16];
        size_t len = (size_t)snprintf(key, sizeof(key), "key%zu", k);
        if (unit_random(&rng) % 2) {
            assert_ptr_equal(map_put(&m, key, len, &values[k]), there[k]);
            count += there[k] == NULL;
            there[k] = &values[k];
        } else {
            assert_ptr_equal(map_remove(&m, key, len), there[k]);
            count -= there[k] != NULL;
            there[k] = NULL;
        }
        assert_int_equal(m.count, count);
    }
    assert_true(m.cap <= 8 * KEYS);
    size_t seen = 0;
    size_t pos = 0;
    const char *key;
    void *value;
    while (map_next(&m, &pos, &key, &value)) {
        char expected[32];
        snprintf(expected, sizeof(expected), "key%td", (int *)value - values);
        assert_string_equal(key, expected);
        seen++;
    }
    assert_int_equal(seen, count);
    map_fini(&m);
    pos = 0;
    assert_false(map_next(&m, &pos, NULL, NULL));
}

UNIT_MAIN(UNIT(put_get_remove), UNIT(keys_are_bytes), UNIT(random_changes))
