#pragma once
/* What stands before each message of gRPC: whether the message is compressed, and its size. Pure;
 * any thread.
 * source: gRPC over HTTP2, "Length-Prefixed-Message" */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define GRPC_PREFIX_BYTES 5u

/* grpc_prefix_put - write the prefix of a message of `len` bytes; returns where the message
 * goes. */
static inline uint8_t *grpc_prefix_put(uint8_t *to, bool compressed, uint32_t len)
{
    uint32_t length = __builtin_bswap32(len);
    to[0] = compressed;
    memcpy(to + 1, &length, sizeof(length));
    return to + GRPC_PREFIX_BYTES;
}

/* grpc_prefix_len - the size that a prefix says. */
static inline uint32_t grpc_prefix_len(const uint8_t *prefix)
{
    uint32_t length;
    memcpy(&length, prefix + 1, sizeof(length));
    return __builtin_bswap32(length);
}
