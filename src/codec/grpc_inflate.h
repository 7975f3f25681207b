#pragma once
/* Compressed messages of gRPC: grpc-encoding gzip and deflate (zlib). Any thread. */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

enum grpc_inflate_encoding {
    GRPC_INFLATE_IDENTITY,
    GRPC_INFLATE_GZIP,
    GRPC_INFLATE_DEFLATE,
    GRPC_INFLATE_UNKNOWN,
};

/* grpc_inflate_encoding - by the value of grpc-encoding. */
enum grpc_inflate_encoding grpc_inflate_encoding(const char *name, size_t len);

/* grpc_inflate - what a compressed message holds.
 * limit     the most bytes it may have
 * ret       a buffer, charged to the budget, the caller's; ret_bytes of it are the message
 * errors    INVALID_ARG for bytes that are not of that encoding, or too many; UNAVAILABLE as pool_buf */
struct err *grpc_inflate(enum grpc_inflate_encoding encoding, const void *data, size_t len,
                         size_t limit, struct buf **ret, size_t *ret_bytes);
