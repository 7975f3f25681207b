#include "isolate/wire/isolate_wire.h"

#include "base/mem.h"
#include "support/unit.h"

#include <string.h>

static void what_is_put_is_read(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    isolate_wire_put(&sb, UINT64_MAX);
    isolate_wire_put_text(&sb, "a text");
    isolate_wire_put_text(&sb, NULL);
    isolate_wire_put_text(&sb, "");
    isolate_wire_put_bytes(&sb, "\0\1\2", 3);
    memcpy(isolate_wire_put_room(&sb, 5), "room!", 5);
    isolate_wire_put(&sb, 7);
    uint8_t *copy = mem_alloc_aligned(sb.len, 64);
    memcpy(copy, sb.data, sb.len);
    struct isolate_wire w;
    uint64_t len;
    isolate_wire_read(&w, copy, sb.len);
    assert_true(isolate_wire_get(&w) == UINT64_MAX);
    assert_string_equal(isolate_wire_get_text(&w), "a text");
    assert_null(isolate_wire_get_text_or_null(&w));
    assert_string_equal(isolate_wire_get_text(&w), "");
    assert_memory_equal(isolate_wire_get_bytes(&w, &len), "\0\1\2", 3);
    assert_int_equal(len, 3);
    const void *room = isolate_wire_get_room(&w, &len);
    assert_int_equal(len, 5);
    assert_int_equal((uintptr_t)room % 64, 0);
    assert_memory_equal(room, "room!", 5);
    assert_int_equal(isolate_wire_get_most(&w, 7), 7);
    assert_false(w.bad);
    assert_int_equal(isolate_wire_left(&w), 0);
    mem_free(copy);
    strbuf_fini(&sb);
}

static void mistakes(void **state)
{
    (void)state;
    struct isolate_wire w;
    uint64_t len;
    isolate_wire_read(&w, "1234567", 7);
    assert_int_equal(isolate_wire_get(&w), 0);
    assert_true(w.bad);
    assert_string_equal(isolate_wire_get_text(&w), "");
    assert_null(isolate_wire_get_bytes(&w, &len));
    assert_int_equal(len, 0);

    const uint64_t long_text[2] = {9, 0};
    isolate_wire_read(&w, long_text, sizeof(long_text));
    assert_string_equal(isolate_wire_get_text(&w), "");
    assert_true(w.bad);
    struct {
        uint64_t len;
        char text[8];
    } inner = {4, "a\0bc"}, open = {3, "abcdefg"};
    isolate_wire_read(&w, &inner, sizeof(inner));
    assert_string_equal(isolate_wire_get_text(&w), "");
    assert_true(w.bad);
    isolate_wire_read(&w, &open, sizeof(open));
    assert_string_equal(isolate_wire_get_text(&w), "");
    assert_true(w.bad);
    const uint64_t eight = 8;
    isolate_wire_read(&w, &eight, sizeof(eight));
    assert_int_equal(isolate_wire_get_most(&w, 7), 0);
    assert_true(w.bad);
    const uint64_t huge = UINT64_MAX - 3;
    isolate_wire_read(&w, &huge, sizeof(huge));
    assert_null(isolate_wire_get_room(&w, &len));
    assert_true(w.bad);
}

UNIT_MAIN(UNIT(what_is_put_is_read), UNIT(mistakes))
