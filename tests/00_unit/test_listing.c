/* cloud/provider/listing: objects by name as models, versions and stamps. */
#include "cloud/provider/listing.h"

#include "base/strbuf.h"
#include "support/unit.h"

#include <string.h>

static void add(struct listing *l, const char *name, const char *tag)
{
    unit_succeeds(listing_add(l, name, strlen(name), 1, tag, ""));
}

/* MR-15. */
static void models_of_a_listing(void **state)
{
    (void)state;
    static const char *const names[] = {"b/1/x",          "readme", ".git/x",  "a-b/1/x",
                                        "a/config.pbtxt", "a/1/x",  "a.b/1/x", "a/1/y",
                                        "a/2/",           "/odd",   "a/1/x"};
    struct listing l;
    listing_init(&l);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        add(&l, names[i], "t");
    listing_sort(&l);
    struct strbuf found = STRBUF_INIT;
    size_t at = 0;
    const char *name;
    size_t len;
    while (listing_next_model(&l, &at, &name, &len))
        strbuf_printf(&found, "%.*s ", (int)len, name);
    assert_string_equal(strbuf_str(&found), "a-b a.b a b ");
    strbuf_fini(&found);
    static const struct {
        const char *model;
        size_t count;
    } counts[] = {{"a", 4}, {"a-b", 1}, {"a.b", 1}, {"b", 1}, {"", 1}, {"c", 0}, {"readme", 0}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        size_t first;
        size_t count;
        listing_model(&l, counts[i].model, &first, &count);
        assert_int_equal(count, counts[i].count);
    }
    listing_fini(&l);
}

/* MR-25, MR-26. */
static void parts_of_a_model(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int64_t part;
        bool in;
    } cases[] = {
        {"config.pbtxt", LISTING_REST, true},
        {"config.pbtxt", LISTING_CONFIG, true},
        {"config.pbtxt", LISTING_BESIDE, false},
        {"configs/a.pbtxt", LISTING_CONFIG, true},
        {"labels.txt", LISTING_BESIDE, true},
        {"labels.txt", LISTING_CONFIG, false},
        {"1/model", 1, true},
        {"1/model", 10, false},
        {"10/model", 10, true},
        {"01/model", 1, false},
        {"01/model", LISTING_REST, true},
        {"0/model", LISTING_REST, true},
        {"v1/model", LISTING_BESIDE, true},
        {"1/model", LISTING_REST, false},
        {"1/model", LISTING_ALL, true},
        {"1", 1, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(listing_in(cases[i].path, cases[i].part), cases[i].in);
}

static uint64_t stamp(const char *tag, const char *extra, int64_t part)
{
    struct listing l;
    size_t first;
    size_t count;
    listing_init(&l);
    add(&l, "m/config.pbtxt", "c");
    add(&l, "m/1/x", tag);
    add(&l, "m2/1/x", "other");
    if (extra)
        add(&l, extra, "t");
    listing_sort(&l);
    listing_model(&l, "m", &first, &count);
    uint64_t s = listing_stamp(&l, first, count, part);
    listing_fini(&l);
    return s;
}

static void stamps_change_with_their_part(void **state)
{
    (void)state;
    assert_true(stamp("t", NULL, 1) == stamp("t", "m3/1/x", 1));
    assert_true(stamp("t", NULL, 1) != stamp("u", NULL, 1));
    assert_true(stamp("t", NULL, LISTING_CONFIG) == stamp("u", NULL, LISTING_CONFIG));
    assert_true(stamp("t", NULL, LISTING_ALL) != stamp("t", "m/2/x", LISTING_ALL));
    assert_true(stamp("t", NULL, 1) == stamp("t", "m/2/x", 1));
    assert_true(stamp("t", "m/labels", LISTING_BESIDE) != stamp("t", NULL, LISTING_BESIDE));
    assert_true(stamp("t", NULL, 7) != 0);
}

static void names_that_climb(void **state)
{
    (void)state;
    static const char *const bad[] = {"m/../x", "m/1/..", "m//x", "m/./x",
                                      "m/1/"
                                      "\x2e\x2e/\x2e\x2e/x"};
    static const char *const good[] = {"m/", "m/1/", "m/1/..x", "m/1/%2e%2e", "m/1/a\\..\\b"};
    for (size_t i = 0; i < 10; i++) {
        struct listing l;
        listing_init(&l);
        add(&l, i < 5 ? bad[i] : good[i - 5], "t");
        if (i < 5)
            unit_fails(listing_check(&l, 0, 1), STATUS_INVALID_ARG, "would not stay within");
        else
            unit_succeeds(listing_check(&l, 0, 1));
        listing_fini(&l);
    }
}

static void it_has_a_limit(void **state)
{
    (void)state;
    struct listing l;
    listing_init(&l);
    l.max = 2;
    add(&l, "a/1", "t");
    unit_fails(listing_add(&l, "a\0b", 3, 1, "t", ""), STATUS_INVALID_ARG, "NUL");
    add(&l, "b/1", "t");
    unit_fails(listing_add(&l, "c/1", 3, 1, "t", ""), STATUS_INVALID_ARG, "more than 2 objects");
    listing_fini(&l);
}

static void so_have_its_names(void **state)
{
    (void)state;
    struct listing l;
    listing_init(&l);
    l.bytes = LISTING_MAX_BYTES - 4;
    add(&l, "a/1", "t");
    assert_false(l.full);
    unit_fails(listing_add(&l, "a/2", 3, 1, "", ""), STATUS_INVALID_ARG, "names of more than");
    assert_true(l.full);
    listing_fini(&l);
}

UNIT_MAIN(UNIT(models_of_a_listing), UNIT(parts_of_a_model), UNIT(stamps_change_with_their_part),
          UNIT(names_that_climb), UNIT(it_has_a_limit), UNIT(so_have_its_names))
