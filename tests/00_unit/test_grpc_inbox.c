/* grpc/grpc_inbox: messages out of bytes that come in any portions. */
#include "grpc/grpc_inbox.h"

#include "base/budget.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

/* A message with its prefix. */
static uint8_t *wire(uint8_t flag, const void *body, uint32_t len)
{
    uint8_t *w = malloc(GRPC_PREFIX_BYTES + len + 1);
    const uint8_t prefix[] = {flag, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
                              (uint8_t)len};
    memcpy(w, prefix, sizeof(prefix));
    if (len)
        memcpy(w + GRPC_PREFIX_BYTES, body, len);
    return w;
}

static enum grpc_inbox_result feed(struct grpc_inbox *in, const uint8_t **data, size_t *len)
{
    struct err *e = NULL;
    enum grpc_inbox_result r =
        grpc_inbox_feed(in, NULL, data, len, GRPC_INBOX_MAX_BYTES, false, &e);
    assert_null(e);
    return r;
}

static void whole_messages_stay_where_they_are(void **state)
{
    (void)state;
    uint8_t *w = wire(0, "hello", 5);
    struct grpc_inbox in = {0};
    const uint8_t *at = w;
    size_t len = 10;
    assert_false(grpc_inbox_partial(&in));
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_WHOLE);
    assert_ptr_equal(in.data, w + 5);
    assert_null(in.buf);
    assert_int_equal(in.size, 5);
    assert_int_equal(len, 0);
    assert_false(grpc_inbox_partial(&in));
    grpc_inbox_next(&in);
    free(w);
}

static void every_way_to_cut_it(void **state)
{
    (void)state;
    static const char body[] = "a message";
    const uint32_t total = GRPC_PREFIX_BYTES + sizeof(body);
    uint8_t *w = wire(1, body, sizeof(body));
    for (size_t first = 0; first <= total; first++) {
        for (size_t second = first; second <= total; second++) {
            struct grpc_inbox in = {0};
            const size_t ends[] = {first, second, total};
            enum grpc_inbox_result r = GRPC_INBOX_MORE;
            size_t at = 0;
            for (int i = 0; i < 3 && r == GRPC_INBOX_MORE; i++) {
                const uint8_t *data = w + at;
                size_t len = ends[i] - at;
                r = feed(&in, &data, &len);
                assert_int_equal(len, 0);
                at = ends[i];
                assert_int_equal(grpc_inbox_partial(&in), at > 0 && at < total);
            }
            assert_int_equal(r, GRPC_INBOX_WHOLE);
            assert_true(in.compressed);
            assert_memory_equal(in.data, body, sizeof(body));
            grpc_inbox_next(&in);
        }
    }
    free(w);
    assert_int_equal(budget_in_use(), 0);
}

static void messages_one_after_the_other(void **state)
{
    (void)state;
    uint8_t w[16] = {0, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
    const uint8_t *at = w;
    size_t len = sizeof(w);
    struct grpc_inbox in = {0};
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_WHOLE);
    assert_int_equal(*in.data, 'a');
    grpc_inbox_next(&in);
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_WHOLE);
    assert_int_equal(in.size, 0);
    grpc_inbox_next(&in);
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_MORE);
    assert_int_equal(grpc_inbox_left(&in), 9);
    assert_true(grpc_inbox_partial(&in));
    grpc_inbox_next(&in);
}

static void refused_prefixes(void **state)
{
    (void)state;
    struct grpc_inbox in = {0};
    const uint8_t large[] = {0, 0x80, 0, 0, 0};
    const uint8_t *at = large;
    size_t len = sizeof(large);
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_TOO_LARGE);
    grpc_inbox_next(&in);
    const uint8_t flags[] = {2, 0, 0, 0, 0};
    at = flags;
    len = sizeof(flags);
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_BAD);
    grpc_inbox_next(&in);
}

static void a_message_is_charged_before_it_is_held(void **state)
{
    (void)state;
    const struct {
        size_t limit, others;
        const char *words;
    } rows[] = {{2000, 1000, "no room for 1024 bytes: 1000 of the 2000"},
                {1000, 0, "no room for a message of 1024 bytes: only 1000"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        budget_set_limit(rows[i].limit);
        assert_true(budget_charge(rows[i].others));
        const uint8_t begun[] = {0, 0, 0, 4, 0, 'x'};
        const uint8_t *at = begun;
        size_t len = sizeof(begun);
        struct grpc_inbox in = {0};
        struct err *e = NULL;
        assert_int_equal(grpc_inbox_feed(&in, NULL, &at, &len, GRPC_INBOX_MAX_BYTES, false, &e),
                         GRPC_INBOX_NO_ROOM);
        unit_fails(e, STATUS_UNAVAILABLE, rows[i].words);
        grpc_inbox_next(&in);
        assert_int_equal(budget_in_use(), rows[i].others);
        budget_release(rows[i].others);
    }
    budget_set_limit(SIZE_MAX);
}

static void a_method_says_how_large(void **state)
{
    (void)state;
    for (uint8_t more = 0; more < 2; more++) {
        const uint8_t prefix[] = {0, 0, 1, 0, more};
        const uint8_t *at = prefix;
        size_t len = sizeof(prefix);
        struct grpc_inbox in = {0};
        struct err *e = NULL;
        assert_int_equal(grpc_inbox_feed(&in, NULL, &at, &len, 1 << 16, false, &e),
                         more ? GRPC_INBOX_TOO_LARGE : GRPC_INBOX_MORE);
        assert_null(e);
        grpc_inbox_next(&in);
    }
}

/* The tensor that goes on behind the first bytes lies on 64, whatever stands before it. */
static void tensors_are_aligned(void **state)
{
    (void)state;
    for (uint32_t name = 0; name < 70; name++) {
        uint8_t body[600] = {0x0a, (uint8_t)name};
        uint32_t offset = 2 + name;
        body[offset++] = 0x3a; /* raw_input_contents of 400 bytes */
        body[offset++] = 0x90;
        body[offset++] = 0x03;
        uint8_t *w = wire(0, body, offset + 400);
        struct grpc_inbox in = {0};
        const uint8_t *at = w;
        size_t len = 200;
        struct err *e = NULL;
        assert_int_equal(grpc_inbox_feed(&in, NULL, &at, &len, GRPC_INBOX_MAX_BYTES, true, &e),
                         GRPC_INBOX_MORE);
        assert_int_equal((uintptr_t)(in.data + offset) % 64, 0);
        len = GRPC_PREFIX_BYTES + offset + 400 - 200;
        assert_int_equal(grpc_inbox_feed(&in, NULL, &at, &len, GRPC_INBOX_MAX_BYTES, true, &e),
                         GRPC_INBOX_WHOLE);
        assert_memory_equal(in.data, body, offset + 400);
        grpc_inbox_next(&in);
        free(w);
    }
}

static void kept_messages_outlive_their_bytes(void **state)
{
    (void)state;
    uint8_t *w = wire(0, "hello", 5);
    struct grpc_inbox in = {0};
    const uint8_t *at = w;
    size_t len = 10;
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_WHOLE);
    unit_succeeds(grpc_inbox_keep(&in, NULL));
    free(w);
    assert_memory_equal(in.data, "hello", 5);
    assert_non_null(in.buf);
    grpc_inbox_next(&in);
    assert_int_equal(budget_in_use(), 0);
}

/* A guess where bytes belong may be wrong, and be made for a message that does not go on: it
 * leaves no memory that nobody is charged for, and charges little more than what has come. */
static void what_is_guessed_is_charged(void **state)
{
    (void)state;
    const size_t page = (size_t)2 << 20;
    const uint8_t begun[] = {0, 0x7f, 0, 0, 0, 1};
    struct grpc_inbox in = {0};
    const uint8_t *at = begun;
    size_t len = sizeof(begun);
    assert_int_equal(grpc_inbox_room(&in, page), 0);
    const size_t others = (size_t)4 << 30; /* the message is less than the whole budget */
    budget_set_limit(others + page);
    assert_true(budget_charge(others));
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_MORE);
    assert_int_equal(budget_in_use(), others + 4096);
    assert_int_equal(grpc_inbox_room(&in, 100), 100);
    assert_int_equal(grpc_inbox_room(&in, 2 * page), 16384);
    assert_int_equal(budget_in_use(), others + 32768);
    uint8_t *some = calloc(1, page - 1);
    at = some;
    len = page - 1;
    assert_int_equal(feed(&in, &at, &len), GRPC_INBOX_MORE);
    assert_int_equal(budget_in_use(), others + page);
    assert_int_equal(grpc_inbox_room(&in, page), 0);
    budget_set_limit(others + 3 * page);
    assert_int_equal(grpc_inbox_room(&in, 3 * page), page);
    assert_int_equal(budget_in_use(), others + 2 * page);
    free(some);
    grpc_inbox_next(&in);
    budget_release(others);
    budget_set_limit(SIZE_MAX);
    assert_int_equal(budget_in_use(), 0);
}

UNIT_MAIN(UNIT(whole_messages_stay_where_they_are), UNIT(every_way_to_cut_it),
          UNIT(messages_one_after_the_other), UNIT(refused_prefixes),
          UNIT(a_message_is_charged_before_it_is_held), UNIT(what_is_guessed_is_charged),
          UNIT(a_method_says_how_large), UNIT(tensors_are_aligned),
          UNIT(kept_messages_outlive_their_bytes))
