/* codec/grpc_inflate: compressed messages, and those that only pretend to be. */
#include "codec/grpc_inflate.h"

#include "base/budget.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LIMIT ((size_t)8 << 20)

/* Compressed by zlib itself; free the result. */
static uint8_t *deflated(enum grpc_inflate_encoding encoding, const void *data, size_t len,
                         size_t *ret_len)
{
    z_stream z = {0};
    int bits = encoding == GRPC_INFLATE_GZIP ? 31 : 15;
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

static void round_trip(enum grpc_inflate_encoding encoding, size_t len)
{
    uint8_t *data = calloc(1, len + 1);
    uint64_t random = len;
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(unit_random(&random) & 3);
    size_t packed_len;
    uint8_t *packed = deflated(encoding, data, len, &packed_len);
    struct buf *buf = NULL;
    size_t got = 0;
    unit_succeeds(grpc_inflate(encoding, packed, packed_len, LIMIT, &buf, &got));
    assert_int_equal(got, len);
    if (len)
        assert_memory_equal(buf->data, data, len);
    buf_unref(buf);
    for (size_t cut = 0; cut < packed_len && cut < 100; cut++)
        unit_fails(grpc_inflate(encoding, packed, cut, LIMIT, &buf, &got), STATUS_INVALID_ARG,
                   "cannot be read");
    free(packed);
    free(data);
}

static void round_trips(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 300000, LIMIT};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        round_trip(GRPC_INFLATE_GZIP, sizes[i]);
        round_trip(GRPC_INFLATE_DEFLATE, sizes[i]);
    }
    assert_int_equal(budget_in_use(), 0);
}

static void bombs(void **state)
{
    (void)state;
    uint8_t *zeros = calloc(1, LIMIT + 1);
    size_t len;
    uint8_t *packed = deflated(GRPC_INFLATE_GZIP, zeros, LIMIT + 1, &len);
    struct buf *buf = NULL;
    size_t got;
    unit_fails(grpc_inflate(GRPC_INFLATE_GZIP, packed, len, LIMIT, &buf, &got), STATUS_INVALID_ARG,
               "over 8388608 bytes");
    budget_set_limit(1 << 20);
    unit_fails(grpc_inflate(GRPC_INFLATE_GZIP, packed, len, LIMIT, &buf, &got), STATUS_UNAVAILABLE,
               "no room");
    budget_set_limit(SIZE_MAX);
    assert_int_equal(budget_in_use(), 0);
    free(packed);
    free(zeros);
}

static void nonsense(void **state)
{
    (void)state;
    struct buf *buf = NULL;
    size_t got;
    unit_fails(grpc_inflate(GRPC_INFLATE_GZIP, "not gzip at all", 15, LIMIT, &buf, &got),
               STATUS_INVALID_ARG, "cannot be read");
    unit_fails(grpc_inflate(GRPC_INFLATE_DEFLATE, "", 0, LIMIT, &buf, &got), STATUS_INVALID_ARG,
               "cut off");
}

static void names(void **state)
{
    (void)state;
    assert_int_equal(grpc_inflate_encoding("identity", 8), GRPC_INFLATE_IDENTITY);
    assert_int_equal(grpc_inflate_encoding("gzip", 4), GRPC_INFLATE_GZIP);
    assert_int_equal(grpc_inflate_encoding("deflate", 7), GRPC_INFLATE_DEFLATE);
    assert_int_equal(grpc_inflate_encoding("snappy", 6), GRPC_INFLATE_UNKNOWN);
    assert_int_equal(grpc_inflate_encoding("", 0), GRPC_INFLATE_UNKNOWN);
}

UNIT_MAIN(UNIT(round_trips), UNIT(bombs), UNIT(nonsense), UNIT(names))
