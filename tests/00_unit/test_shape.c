/* Shapes. */
#include "model/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void elements(void **state)
{
    (void)state;
    uint64_t n = 7;
    assert_true(shape_elements(NULL, 0, &n) && n == 1);
    assert_true(shape_elements((const int64_t[]){2, 3, 4}, 3, &n) && n == 24);
    assert_true(shape_elements((const int64_t[]){5, 0, 4}, 3, &n) && n == 0);
    assert_true(shape_elements((const int64_t[]){INT64_MAX}, 1, &n) && n == INT64_MAX);
    assert_true(shape_elements((const int64_t[]){1 << 30, 1 << 30, 4}, 3, &n) && n == (uint64_t)1
                                                                                          << 62);
    assert_false(shape_elements((const int64_t[]){1 << 30, 1 << 30, 8}, 3, &n));
    assert_false(shape_elements((const int64_t[]){INT64_MAX, 2}, 2, &n));
    assert_false(shape_elements((const int64_t[]){2, -1}, 2, &n));
    assert_false(shape_elements((const int64_t[]){-1, -1}, 2, &n));
    assert_int_equal(n, (uint64_t)1 << 62);
}

static void equal(void **state)
{
    (void)state;
    const int64_t a[] = {1, 2, 3};
    const int64_t b[] = {1, 2, 4};
    assert_true(shape_equal(a, 3, a, 3));
    assert_true(shape_equal(a, 2, b, 2));
    assert_true(shape_equal(NULL, 0, NULL, 0));
    assert_false(shape_equal(a, 3, b, 3));
    assert_false(shape_equal(a, 3, a, 2));
}

/* MC-28, MC-29. */
static void fits(void **state)
{
    (void)state;
    const int64_t pattern[] = {4, SHAPE_ANY};
    assert_true(shape_fits(pattern, 2, (const int64_t[]){4, 9}, 2));
    assert_true(shape_fits(pattern, 2, (const int64_t[]){4, 0}, 2));
    assert_false(shape_fits(pattern, 2, (const int64_t[]){4, -1}, 2));
    assert_false(shape_fits(pattern, 2, (const int64_t[]){3, 9}, 2));
    assert_false(shape_fits(pattern, 2, (const int64_t[]){4}, 1));
    assert_false(shape_fits(pattern, 2, (const int64_t[]){4, 9, 1}, 3));
    assert_false(shape_fits((const int64_t[]){4, 4}, 2, (const int64_t[]){4, 5}, 2));
    assert_true(shape_fits(NULL, 0, NULL, 0));
}

static void print(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    shape_print(&out, (const int64_t[]){2, -1, 4}, 3);
    shape_print(&out, NULL, 0);
    assert_string_equal(strbuf_str(&out), "[2,-1,4][]");
    strbuf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements),
        cmocka_unit_test(equal),
        cmocka_unit_test(fits),
        cmocka_unit_test(print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
