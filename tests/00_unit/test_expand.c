/* codec/expand and codec/shrink: compressed bytes by slices, and those that only pretend to be. */
#include "codec/expand.h"

#include "base/budget.h"
#include "codec/shrink.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LIMIT ((size_t)8 << 20)

/* Compressed by zlib itself; free the result. */
static uint8_t *deflated(enum coding coding, const void *data, size_t len, size_t *ret_len)
{
    z_stream z = {0};
    int bits = coding == CODING_GZIP ? 31 : 15;
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t cap = deflateBound(&z, len);
    uint8_t *out = malloc(cap);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (unsigned)len;
    z.next_out = out;
    z.avail_out = (unsigned)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *ret_len = z.total_out;
    deflateEnd(&z);
    return out;
}

/* Compressed by our own compressor; free the result. */
static uint8_t *packed_by_zstd(const void *data, size_t len, size_t *ret_len)
{
    struct iovec piece = {(void *)(uintptr_t)data, len};
    struct shrink *s;
    unit_succeeds(shrink_new(&piece, 1, CODING_ZSTD, 0, &s));
    bool done;
    struct buf *buf;
    unit_succeeds(shrink_step(s, SIZE_MAX, &done));
    assert_true(done);
    shrink_take(s, &buf, ret_len);
    shrink_free(s);
    uint8_t *out = malloc(*ret_len);
    memcpy(out, buf->data, *ret_len);
    buf_unref(buf);
    return out;
}

static uint8_t *packed_by(enum coding coding, const void *data, size_t len, size_t *ret_len)
{
    return coding == CODING_ZSTD ? packed_by_zstd(data, len, ret_len)
                                 : deflated(coding, data, len, ret_len);
}

static struct expand *expand_of(const void *data, size_t len, enum coding coding, size_t limit)
{
    struct expand *x;
    unit_succeeds(expand_new(
        &(struct expand_spec){
            .data = data, .len = len, .coding = coding, .limit = limit, .before = 24, .after = 8},
        &x));
    return x;
}

/* To the end, in slices; returns the state and how many slices there were. */
static enum expand_state run(struct expand *x, size_t slice, size_t *ret_slices)
{
    enum expand_state s;
    *ret_slices = 0;
    do {
        s = expand_step(x, slice);
        (*ret_slices)++;
    } while (s == EXPAND_MORE);
    return s;
}

static uint8_t *some_bytes(size_t len)
{
    uint8_t *data = calloc(1, len + 1);
    uint64_t random = len;
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(unit_random(&random) & 3);
    return data;
}

static void round_trip(enum coding coding, size_t len, size_t slice)
{
    uint8_t *data = some_bytes(len);
    size_t packed_len, got, slices;
    uint8_t *packed = packed_by(coding, data, len, &packed_len);
    struct expand *x = expand_of(packed, packed_len, coding, LIMIT);
    assert_int_equal(run(x, slice, &slices), EXPAND_DONE);
    assert_true(slices >= len / slice);
    struct buf *buf;
    expand_take(x, &buf, &got);
    expand_free(x);
    assert_int_equal(got, len);
    assert_true(buf->size >= 24 + len + 8);
    assert_memory_equal(buf->data + 24, data, len);
    buf_unref(buf);
    free(packed);
    free(data);
}

static void round_trips(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 300000, 3000000, LIMIT};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        round_trip(CODING_GZIP, sizes[i], SIZE_MAX);
        round_trip(CODING_DEFLATE, sizes[i], SIZE_MAX);
        round_trip(CODING_DEFLATE, sizes[i], 70000);
        round_trip(CODING_GZIP, sizes[i], 70000);
        round_trip(CODING_ZSTD, sizes[i], SIZE_MAX);
        round_trip(CODING_ZSTD, sizes[i], 70000);
    }
    assert_int_equal(budget_in_use(), 0);
}

/* What gzip says about its size may be a lie. */
static void lies_about_its_size(void **state)
{
    (void)state;
    uint8_t *data = some_bytes(200000);
    size_t len, got, slices;
    uint8_t *packed = deflated(CODING_GZIP, data, 200000, &len);
    static const uint32_t claims[] = {0, 5, 1 << 20, UINT32_MAX};
    for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
        memcpy(packed + len - 4, &claims[i], 4);
        struct expand *x = expand_of(packed, len, CODING_GZIP, LIMIT);
        assert_int_equal(run(x, 10000, &slices), EXPAND_DAMAGED);
        assert_non_null(strstr(expand_why(x), "length"));
        struct buf *buf;
        expand_take(x, &buf, &got);
        expand_free(x);
        assert_int_equal(got, 200000);
        assert_memory_equal(buf->data + 24, data, got);
        buf_unref(buf);
    }
    assert_int_equal(budget_in_use(), 0);
    free(packed);
    free(data);
}

static void check_cut_off(enum coding coding, size_t begin)
{
    uint8_t *data = some_bytes(5000);
    size_t len, slices;
    uint8_t *packed = packed_by(coding, data, 5000, &len);
    for (size_t cut = begin; cut < len; cut++) {
        struct expand *x = expand_of(packed, cut, coding, LIMIT);
        assert_int_equal(run(x, 1000, &slices), EXPAND_DAMAGED);
        assert_string_equal(expand_why(x), "it is cut off");
        expand_free(x);
    }
    free(packed);
    free(data);
}

static void cut_off(void **state)
{
    (void)state;
    check_cut_off(CODING_GZIP, 0);
    check_cut_off(CODING_ZSTD, 4); /* before, it is no frame of zstd */
}

/* A window of 8 MiB is made, and charged, when its frame begins; a larger one is not made. */
static void windows(void **state)
{
    (void)state;
    static uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0x0b, 0, 0, 'x'}; /* RLE: one 'x' */
    size_t slices, got;
    struct buf *buf;
    frame[5] = 13 << 3;
    size_t before = budget_in_use();
    struct expand *x = expand_of(frame, sizeof(frame), CODING_ZSTD, LIMIT);
    assert_int_equal(expand_step(x, 6), EXPAND_MORE);
    assert_true(budget_in_use() - before > (size_t)8 << 20);
    assert_int_equal(run(x, 100, &slices), EXPAND_DONE);
    expand_take(x, &buf, &got);
    expand_free(x);
    assert_int_equal(got, 1);
    assert_int_equal(buf->data[24], 'x');
    buf_unref(buf);
    budget_set_limit(4 << 20);
    x = expand_of(frame, sizeof(frame), CODING_ZSTD, LIMIT);
    assert_int_equal(run(x, 6, &slices), EXPAND_NO_ROOM);
    unit_fails(expand_error(x), STATUS_UNAVAILABLE, "no room");
    expand_free(x);
    budget_set_limit(SIZE_MAX);
    frame[5] = 13 << 3 | 1;
    x = expand_of(frame, sizeof(frame), CODING_ZSTD, LIMIT);
    assert_int_equal(run(x, 100, &slices), EXPAND_DAMAGED);
    assert_non_null(strstr(expand_why(x), "too much memory"));
    expand_free(x);
    assert_int_equal(budget_in_use(), before);
}

static void check_bombs(enum coding coding)
{
    uint8_t *zeros = calloc(1, LIMIT + 1);
    size_t len, slices;
    uint8_t *packed = packed_by(coding, zeros, LIMIT + 1, &len);
    struct expand *x = expand_of(packed, len, coding, LIMIT);
    assert_int_equal(run(x, 65536, &slices), EXPAND_TOO_LARGE);
    assert_true(slices >= LIMIT / 65536);
    expand_free(x);
    x = expand_of(packed, len, coding, LIMIT + 1);
    assert_int_equal(run(x, 65536, &slices), EXPAND_DONE);
    expand_free(x);
    budget_set_limit(coding == CODING_ZSTD ? 6 << 20 : 3 << 20); /* its window has 2 MiB */
    x = expand_of(packed, len, coding, LIMIT + 1);
    assert_int_equal(run(x, 65536, &slices), EXPAND_NO_ROOM);
    assert_true(slices > 16); /* it is charged as it grows */
    unit_fails(expand_error(x), STATUS_UNAVAILABLE, "no room");
    expand_free(x);
    budget_set_limit(1000);
    unit_fails(
        expand_new(
            &(struct expand_spec){.data = packed, .len = len, .coding = coding, .limit = LIMIT},
            &x),
        STATUS_UNAVAILABLE, "no room");
    budget_set_limit(SIZE_MAX);
    assert_int_equal(budget_in_use(), 0);
    free(packed);
    free(zeros);
}

static void bombs(void **state)
{
    (void)state;
    check_bombs(CODING_GZIP);
    check_bombs(CODING_ZSTD);
}

/* Blocks that hold nothing: a slice also ends after so many bytes that were read. */
static void empty_blocks(void **state)
{
    (void)state;
    size_t count = 200000, slices, len = 2 + count * 5;
    uint8_t *packed = calloc(1, len);
    memcpy(packed, "\x78\x9c", 2);
    for (size_t i = 0; i < count; i++)
        memcpy(packed + 2 + i * 5, "\0\0\0\xff\xff", 5);
    struct expand *x = expand_of(packed, len, CODING_DEFLATE, LIMIT);
    assert_int_equal(run(x, 10000, &slices), EXPAND_DAMAGED);
    assert_true(slices >= len / 10000);
    expand_free(x);
    free(packed);
}

static void nonsense(void **state)
{
    (void)state;
    size_t slices;
    struct expand *x = expand_of("not gzip at all", 15, CODING_GZIP, LIMIT);
    assert_int_equal(run(x, 100, &slices), EXPAND_DAMAGED);
    assert_string_equal(expand_why(x), "incorrect header check");
    expand_free(x);
}

static void shrink_and_back(enum coding coding, size_t len, size_t slice)
{
    uint8_t *data = some_bytes(len);
    struct iovec pieces[] = {{data, len / 3}, {NULL, 0}, {data + len / 3, len - len / 3}};
    struct shrink *s;
    unit_succeeds(shrink_new(pieces, 3, coding, 5, &s));
    bool done = false;
    size_t slices = 0, packed_len, got;
    for (; !done; slices++)
        unit_succeeds(shrink_step(s, slice, &done));
    assert_true(slices >= len / slice / 2);
    struct buf *packed, *plain;
    shrink_take(s, &packed, &packed_len);
    shrink_free(s);
    struct expand *x = expand_of(packed->data + 5, packed_len, coding, LIMIT);
    assert_int_equal(run(x, SIZE_MAX, &slices), EXPAND_DONE);
    expand_take(x, &plain, &got);
    expand_free(x);
    assert_int_equal(got, len);
    assert_memory_equal(plain->data + 24, data, len);
    buf_unref(packed);
    buf_unref(plain);
    free(data);
}

static void shrinks(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, 4097, 100000, 1000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        shrink_and_back(CODING_GZIP, sizes[i], 10000);
        shrink_and_back(CODING_DEFLATE, sizes[i], 1 << 30);
        shrink_and_back(CODING_ZSTD, sizes[i], 10000);
    }
    struct shrink *s;
    struct iovec piece = {&s, sizeof(s)};
    budget_set_limit(1000);
    unit_fails(shrink_new(&piece, 1, CODING_GZIP, 0, &s), STATUS_UNAVAILABLE, "no room");
    unit_fails(shrink_new(&piece, 1, CODING_ZSTD, 0, &s), STATUS_UNAVAILABLE, "no room");
    budget_set_limit(SIZE_MAX);
    assert_int_equal(budget_in_use(), 0);
}

UNIT_MAIN(UNIT(round_trips), UNIT(lies_about_its_size), UNIT(cut_off), UNIT(windows), UNIT(bombs),
          UNIT(empty_blocks), UNIT(nonsense), UNIT(shrinks))
