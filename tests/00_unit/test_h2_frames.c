/* Where frames begin and end, in whatever pieces their bytes come. */
#include "net/h2/h2_frames.h"

#include "support/unit.h"

#include <nghttp2/nghttp2.h>

/* The preface, SETTINGS, HEADERS of three bytes that go on, their CONTINUATION, DATA of two. */
static const uint8_t bytes[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                               "\0\0\0\4\0\0\0\0\0"
                               "\0\0\3\1\0\0\0\0\1abc"
                               "\0\0\0\x9\4\0\0\0\1"
                               "\0\0\2\0\1\0\0\0\1xy";
#define LEN (sizeof(bytes) - 1)

/* Whether nothing is owed once so many bytes came. */
static bool whole_after(size_t n)
{
    return n == 24 || n == 33 || n == 54 || n == LEN;
}

static void whole_frames_leave_nothing_to_wait_for(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= LEN; piece++) {
        struct h2_frames f;
        h2_frames_init(&f);
        assert_true(h2_frames_partial(&f));
        for (size_t at = 0; at < LEN;) {
            size_t n = piece < LEN - at ? piece : LEN - at;
            assert_int_equal(h2_frames_take(&f, bytes + at, n), H2_FRAMES_FINE);
            at += n;
            assert_int_equal(h2_frames_partial(&f), !whole_after(at));
        }
    }
}

static enum h2_frames_result take(struct h2_frames *f, uint32_t len, uint8_t type, uint8_t flags)
{
    const uint8_t head[9] = {(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len, type, flags};
    enum h2_frames_result result = h2_frames_take(f, head, sizeof(head));
    f->left = 0; /* as if it had come */
    return result;
}

static struct h2_frames begun(void)
{
    struct h2_frames f;
    h2_frames_init(&f);
    f.left = 0;
    return f;
}

static void blocks_of_headers_have_a_limit(void **state)
{
    (void)state;
    struct h2_frames f = begun();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(take(&f, 60000, NGHTTP2_HEADERS, 0), H2_FRAMES_FINE);
        assert_int_equal(take(&f, 5536, NGHTTP2_CONTINUATION, 0), H2_FRAMES_FINE);
        assert_int_equal(take(&f, 0, NGHTTP2_CONTINUATION, 4), H2_FRAMES_FINE);
        assert_false(h2_frames_partial(&f));
    }
    assert_int_equal(take(&f, 60000, NGHTTP2_HEADERS, 0), H2_FRAMES_FINE);
    assert_int_equal(take(&f, 5537, NGHTTP2_CONTINUATION, 0), H2_FRAMES_BLOCK);
    f = begun();
    assert_int_equal(take(&f, 65537, NGHTTP2_HEADERS, 4), H2_FRAMES_BLOCK);
}

static void trifles_have_a_limit(void **state)
{
    (void)state;
    static const struct {
        uint32_t len;
        uint8_t type;
        uint8_t flags;
        bool trifle;
    } kinds[] = {{0, NGHTTP2_DATA, 0, true},
                 {0, NGHTTP2_DATA, 1, false},
                 {1, NGHTTP2_DATA, 0, false},
                 {256, NGHTTP2_DATA, 8, true},
                 {257, NGHTTP2_DATA, 8, false},
                 {5, NGHTTP2_PRIORITY, 0, true},
                 {8, 0x42, 0, true},
                 {8, 0x10, 0, true},
                 {8, NGHTTP2_PING, 0, false},
                 {0, NGHTTP2_SETTINGS, 0, false},
                 {4, NGHTTP2_WINDOW_UPDATE, 0, false}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct h2_frames f = begun();
        for (unsigned n = 0; n < H2_FRAMES_TRIFLES_MAX; n++)
            assert_int_equal(take(&f, kinds[i].len, kinds[i].type, kinds[i].flags), H2_FRAMES_FINE);
        assert_int_equal(take(&f, kinds[i].len, kinds[i].type, kinds[i].flags),
                         kinds[i].trifle ? H2_FRAMES_TRIFLES : H2_FRAMES_FINE);
    }
}

UNIT_MAIN(UNIT(whole_frames_leave_nothing_to_wait_for), UNIT(blocks_of_headers_have_a_limit),
          UNIT(trifles_have_a_limit))
