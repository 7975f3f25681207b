/* How the backend `tensorflow` reads saved_model.pb itself: what it skips, and what it calls
 * malformed. */
#include "tensorflow/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

static struct wire of(const char *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    return (struct wire){.at = at, .end = at + size};
}

#define OF(text) of(text, sizeof(text) - 1)

/* The number of the first field, and that it is the only one. */
static uint32_t only_field(struct wire wire)
{
    struct wire_field field, other;
    assert_true(wire_next(&wire, &field));
    assert_false(wire_next(&wire, &other));
    assert_false(wire.broken);
    return field.number;
}

static void groups_are_skipped(void **state)
{
    (void)state;
    assert_int_equal(only_field(OF("\x0b\x0c\x10\x01")), 2);
    assert_int_equal(only_field(OF("\x10\x01\x0b\x0c")), 2);
    assert_int_equal(only_field(OF("\x0b\x08\x07\x13\x1a\x02xy\x14\x0c\x10\x01")), 2);
    struct wire nothing = OF("\x0b\x08\x07\x0c");
    struct wire_field field;
    assert_false(wire_next(&nothing, &field));
    assert_false(nothing.broken);
}

static void assert_broken(struct wire wire)
{
    struct wire_field field;
    while (wire_next(&wire, &field))
        ;
    assert_true(wire.broken);
    assert_false(wire_next(&wire, &field));
}

static void what_is_no_field(void **state)
{
    (void)state;
    assert_broken(OF("\x0b\x08\x07"));             /* a group without an end */
    assert_broken(OF("\x0c"));                     /* an end without a group */
    assert_broken(OF("\x0b\x14\x0c"));             /* the end of another */
    assert_broken(OF("\x0b\x13\x0c\x14"));         /* ends in the wrong order */
    assert_broken(OF("\x00\x01"));                 /* the number 0 */
    assert_broken(OF("\x88\x80\x80\x80\x10\x01")); /* a number of 30 bits */
    assert_broken(OF("\x0e"));                     /* a kind that there is not */
    assert_broken(OF("\x12\x05xy"));               /* less than it says */
    assert_broken(OF("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")); /* a number without an end */
}

static void groups_inside_each_other_have_a_limit(void **state)
{
    (void)state;
    char bytes[202];
    memset(bytes, 0x0b, 100);
    memset(bytes + 100, 0x0c, 100);
    struct wire_field field;
    struct wire most = of(bytes, 200), more = of(bytes, sizeof bytes);
    assert_false(wire_next(&most, &field));
    assert_false(most.broken);
    memset(bytes, 0x0b, 101);
    memset(bytes + 101, 0x0c, 101);
    assert_broken(more);
}

/* A SavedModel with one graph of one field. */
static bool is_saved_with(uint32_t number, struct wire content)
{
    struct wire_out out = {0};
    size_t graph = wire_begin(&out, SAVED_GRAPHS);
    void *space = wire_put_space(&out, number, wire_size(content));
    assert_non_null(space);
    if (wire_size(content))
        memcpy(space, content.at, wire_size(content));
    wire_end(&out, graph);
    bool is = message_is_saved((struct wire){.at = out.bytes, .end = out.bytes + out.size});
    wire_free(&out);
    return is;
}

static void each_message_is_read_to_its_end(void **state)
{
    (void)state;
    assert_true(message_is_saved(OF("")));
    assert_true(message_is_saved(OF("\x08\x01")));
    assert_false(message_is_saved(OF("\x08\x01\xff\xff")));
    assert_false(message_is_saved(OF("\x08\x01\x12\x02\x0a\xff"))); /* in its graph */
    assert_true(is_saved_with(META_INFO, OF("\x22\x05serve")));
    assert_false(is_saved_with(META_INFO, OF("\x22\x06serve")));
    assert_false(is_saved_with(META_SAVER, OF("\x0a\x06"
                                              "file")));
    assert_true(is_saved_with(META_COLLECTIONS, OF("\x0a\x01k\x12\x05\x0a\x03\x0a\x01n")));
    assert_false(is_saved_with(META_COLLECTIONS, OF("\x0a\x01k\x12\x05\x0a\x03\x0a\x02n")));
    assert_false(is_saved_with(META_COLLECTIONS, OF("\x0a\x01k\x12\x07\x2a\x05\x0a\x03\x12\x02v")));
    assert_true(is_saved_with(META_SIGNATURES, OF("\x0a\x01k\x12\x07\x0a\x05\x0a\x01x\x12\x00")));
    assert_false(is_saved_with(META_SIGNATURES, OF("\x0a\x01k\x12\x06\x0a\x05\x0a\x01x\x12\x00")));
    assert_false(
        is_saved_with(META_SIGNATURES, OF("\x0a\x01k\x12\x08\x12\x06\x0a\x01x\x12\x01\x0a")));
    assert_false(is_saved_with(META_ASSETS, OF("\x0a\x02\x0a\x01")));
    assert_true(is_saved_with(META_GRAPH, OF("\x0a\x02\x0a\x01"))); /* TensorFlow reads it */
    assert_true(is_saved_with(7, OF("\xff")));                      /* nobody reads it here */
    assert_true(message_is_asset(OF("\x0a\x03\x0a\x01x\x12\x01"
                                    "f")));
    assert_false(message_is_asset(OF("\x0a\x03\x0a\x01x\x12\x02"
                                     "f")));
}

static bool is_text(const char *text)
{
    struct wire_out out = {0};
    wire_put_text(&out, INFO_TAGS, text);
    bool is = is_saved_with(META_INFO, (struct wire){.at = out.bytes, .end = out.bytes + out.size});
    wire_free(&out);
    return is;
}

static void texts_are_utf8(void **state)
{
    (void)state;
    static const char *const right[] = {"",
                                        "serve",
                                        "\x7f",
                                        "\xc2\x80",
                                        "\xdf\xbf",
                                        "\xe0\xa0\x80",
                                        "\xed\x9f\xbf",
                                        "\xee\x80\x80",
                                        "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf"};
    static const char *const wrong[] = {"\x80",
                                        "\xbf\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xc3(",
                                        "\xc3",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xe2\x82",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xff",
                                        "a\xfe"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_true(is_text(right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(is_text(wrong[i]));
    /* wherever a text is read */
    assert_false(is_saved_with(META_SAVER, OF("\x0a\x01\xff")));
    assert_false(is_saved_with(META_SAVER, OF("\x1a\x01\xff")));
    assert_false(is_saved_with(META_COLLECTIONS, OF("\x0a\x01\xff")));
    assert_false(is_saved_with(META_COLLECTIONS, OF("\x0a\x01k\x12\x05\x0a\x03\x0a\x01\xff")));
    assert_false(is_saved_with(META_SIGNATURES, OF("\x0a\x01\xff")));
    assert_false(is_saved_with(META_SIGNATURES, OF("\x0a\x01k\x12\x05\x0a\x03\x0a\x01\xff")));
    assert_false(
        is_saved_with(META_SIGNATURES, OF("\x0a\x01k\x12\x07\x12\x05\x12\x03\x0a\x01\xff")));
    assert_true(is_saved_with(
        META_SIGNATURES,
        OF("\x0a\x01k\x12\x0b\x0a\x09\x12\x07\x1a\x05\x12\x03\x12\x01n"))); /* of a dimension */
    assert_false(is_saved_with(
        META_SIGNATURES, OF("\x0a\x01k\x12\x0b\x0a\x09\x12\x07\x1a\x05\x12\x03\x12\x01\xff")));
    assert_false(is_saved_with(META_ASSETS, OF("\x0a\x03\x0a\x01\xff")));
    assert_false(is_saved_with(META_ASSETS, OF("\x12\x01\xff")));
}

/* The pages stay untouched, and so take no memory. */
static void nothing_is_larger_than_2_gib(void **state)
{
    (void)state;
    static const char head[] = "\x3a\x80\x80\x80\x80\x08"; /* a field of 2 GiB */
    size_t size = sizeof head - 1 + (1ul << 31);
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(bytes != MAP_FAILED);
    memcpy(bytes, head, sizeof head - 1);
    struct wire whole = of(bytes, size);
    assert_int_equal(only_field(whole), 7);
    assert_false(message_is_saved(whole));
    munmap(bytes, size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_skipped),
        cmocka_unit_test(what_is_no_field),
        cmocka_unit_test(groups_inside_each_other_have_a_limit),
        cmocka_unit_test(each_message_is_read_to_its_end),
        cmocka_unit_test(texts_are_utf8),
        cmocka_unit_test(nothing_is_larger_than_2_gib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
