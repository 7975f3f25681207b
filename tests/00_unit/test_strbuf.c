#include "base/strbuf.h"

#include "base/mem.h"
#include "support/unit.h"

#include <string.h>

static void grows_and_ends_in_nul(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    assert_string_equal(strbuf_str(&sb), "");
    for (int i = 0; i < 1000; i++) {
        strbuf_putc(&sb, (char)('a' + i % 26));
        assert_int_equal(sb.data[sb.len], '\0');
    }
    assert_int_equal(sb.len, 1000);
    strbuf_printf(&sb, "%s-%d", "x", 12);
    assert_string_equal(sb.data + 1000, "x-12");
    strbuf_append(&sb, "a\0b", 3);
    assert_int_equal(sb.len, 1007);
    strbuf_append(&sb, NULL, 0);
    strbuf_printf(&sb, "%s", "");
    assert_int_equal(sb.len, 1007);
    strbuf_fini(&sb);
    assert_string_equal(strbuf_str(&sb), "");
}

static void large_prints(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    char long_text[5000];
    memset(long_text, 'z', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    strbuf_printf(&sb, "<%s>", long_text);
    assert_int_equal(sb.len, sizeof(long_text) + 1);
    assert_int_equal(sb.data[sb.len - 1], '>');
    strbuf_fini(&sb);
}

static void take(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    char *empty = strbuf_take(&sb);
    assert_string_equal(empty, "");
    mem_free(empty);
    strbuf_puts(&sb, "abc");
    char *abc = strbuf_take(&sb);
    assert_string_equal(abc, "abc");
    assert_string_equal(strbuf_str(&sb), "");
    mem_free(abc);
    strbuf_fini(&sb);
}

/* Room that was asked for and not used does not change the string. */
static void reserved_but_not_written(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    assert_non_null(strbuf_reserve(&sb, 10));
    memset(sb.data + 1, 'x', 9);
    assert_string_equal(strbuf_str(&sb), "");
    char *to = strbuf_reserve(&sb, 300);
    memset(to, 'y', 300);
    sb.len += 300;
    sb.data[sb.len] = '\0';
    assert_int_equal(strlen(strbuf_str(&sb)), 300);
    strbuf_fini(&sb);
}

UNIT_MAIN(UNIT(grows_and_ends_in_nul), UNIT(large_prints), UNIT(take),
          UNIT(reserved_but_not_written))
