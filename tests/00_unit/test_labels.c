/* Label files. */
#include "model/labels.h"

#include "base/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct labels *parse(const char *text)
{
    struct labels *l = NULL;
    assert_null(labels_parse(text, strlen(text), "labels.txt", &l));
    return l;
}

static void lines(void **state)
{
    (void)state;
    struct labels *l = parse("zero\none with blanks \n\n  three\r\nlast");
    assert_int_equal(labels_count(l), 5);
    assert_string_equal(labels_get(l, 0), "zero");
    assert_string_equal(labels_get(l, 1), "one with blanks ");
    assert_string_equal(labels_get(l, 2), "");
    assert_string_equal(labels_get(l, 3), "  three");
    assert_string_equal(labels_get(l, 4), "last");
    assert_null(labels_get(l, 5));
    assert_null(labels_get(l, UINT64_MAX));
    labels_free(l);
}

static void ends(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t count;
    } rows[] = {{"", 0}, {"\n", 1}, {"a", 1}, {"a\n", 1}, {"a\n\n", 2}, {"\r\n", 1}, {"a\r", 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct labels *l = parse(rows[i].text);
        assert_int_equal(labels_count(l), rows[i].count);
        labels_free(l);
    }
}

static void assert_refused(const char *text, size_t len, const char *message)
{
    struct labels *l = NULL;
    struct err *e = labels_parse(text, len, "labels.txt", &l);
    assert_string_equal(err_message(e), message);
    assert_null(l);
    err_free(e);
}

static void limits(void **state)
{
    (void)state;
    assert_refused("a\nb\0c\n", 6, "labels.txt:2: expected a label without zero bytes");
    char *longest = malloc(LABELS_MAX_LINE + 3);
    memset(longest, 'x', LABELS_MAX_LINE + 3);
    longest[1] = '\n';
    struct labels *l = NULL;
    assert_null(labels_parse(longest, LABELS_MAX_LINE + 2, "labels.txt", &l));
    assert_int_equal(strlen(labels_get(l, 1)), LABELS_MAX_LINE);
    labels_free(l);
    assert_refused(longest, LABELS_MAX_LINE + 3,
                   "labels.txt:2: expected a label of at most 65536 bytes, found 65537");
    /* Refused by its length alone: the bytes are not looked at. */
    assert_refused(longest, LABELS_MAX_BYTES + 1,
                   "labels.txt: expected at most 67108864 bytes of labels, found 67108865");
    free(longest);
}

static void failing_allocations_are_errors(void **state)
{
    (void)state;
    for (long n = 1; n <= 2; n++) {
        struct labels *l = NULL;
        fault_arm(n);
        struct err *e = labels_parse("a\nb", 3, "labels.txt", &l);
        fault_arm(0);
        assert_int_equal(err_code(e), STATUS_UNAVAILABLE);
        err_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(ends),
        cmocka_unit_test(limits),
        cmocka_unit_test(failing_allocations_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
