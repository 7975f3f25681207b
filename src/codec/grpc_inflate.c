#include "codec/grpc_inflate.h"

#include "os/pool.h"

#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#define FIRST_BYTES ((size_t)65536)
#define WINDOW_BITS 15
#define GZIP_BITS   (WINDOW_BITS + 16)
#define STEP_BYTES  ((size_t)1 << 30) /* zlib counts in 32 bits */

enum grpc_inflate_encoding grpc_inflate_encoding(const char *name, size_t len)
{
    if (len == 8 && memcmp(name, "identity", 8) == 0)
        return GRPC_INFLATE_IDENTITY;
    if (len == 4 && memcmp(name, "gzip", 4) == 0)
        return GRPC_INFLATE_GZIP;
    if (len == 7 && memcmp(name, "deflate", 7) == 0)
        return GRPC_INFLATE_DEFLATE;
    return GRPC_INFLATE_UNKNOWN;
}

/* A buffer of twice the size, with what there is so far. */
static struct err *grow(struct buf **buf, size_t used, size_t limit)
{
    size_t bytes = *buf ? (*buf)->size * 2 : FIRST_BYTES;
    struct buf *bigger;
    struct err *e = pool_buf(bytes < limit ? bytes : limit, &bigger);
    if (e)
        return e;
    if (used)
        memcpy(bigger->data, (*buf)->data, used);
    buf_unref(*buf);
    *buf = bigger;
    return NULL;
}

static unsigned step(size_t n)
{
    return (unsigned)(n < STEP_BYTES ? n : STEP_BYTES);
}

/* Runs zlib to the end of its stream; *used counts what it gave. */
static struct err *run(z_stream *z, const uint8_t *data, size_t len, size_t limit, struct buf **buf,
                       size_t *used)
{
    const uint8_t *end = data + len;
    z->next_in = (z_const Bytef *)(uintptr_t)data;
    for (;;) {
        if (!*buf || *used == (*buf)->size) {
            if (*used == limit)
                return err_new(STATUS_INVALID_ARG, "the decompressed message is over %zu bytes",
                               limit);
            struct err *e = grow(buf, *used, limit);
            if (e)
                return e;
        }
        unsigned room = step((*buf)->size - *used);
        z->next_out = (*buf)->data + *used;
        z->avail_out = room;
        z->avail_in = step((size_t)(end - z->next_in));
        int rc = inflate(z, Z_NO_FLUSH);
        *used += room - z->avail_out;
        if (rc == Z_STREAM_END)
            return NULL;
        if (rc != Z_OK)
            return err_new(STATUS_INVALID_ARG, "the compressed message cannot be read: %s",
                           rc == Z_BUF_ERROR ? "it is cut off"
                           : z->msg          ? z->msg
                                             : "bad data");
    }
}

struct err *grpc_inflate(enum grpc_inflate_encoding encoding, const void *data, size_t len,
                         size_t limit, struct buf **ret, size_t *ret_bytes)
{
    z_stream z = {0};
    if (inflateInit2(&z, encoding == GRPC_INFLATE_GZIP ? GZIP_BITS : WINDOW_BITS) != Z_OK)
        return err_new(STATUS_UNAVAILABLE, "no memory to decompress a message");
    struct buf *buf = NULL;
    size_t used = 0;
    struct err *e = run(&z, data, len, limit, &buf, &used);
    inflateEnd(&z);
    if (e) {
        buf_unref(buf);
        return e;
    }
    *ret = buf;
    *ret_bytes = used;
    return NULL;
}
