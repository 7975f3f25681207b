#pragma once
/* Compression of outgoing messages. Worker's thread only. */
#include "codec/coding.h"

#include <stddef.h>

struct h2_reply;
struct grpc_stream;

/* The values of --grpc-infer-response-compression-level. */
enum grpc_pack_level {
    GRPC_PACK_NONE,
    GRPC_PACK_LOW,
    GRPC_PACK_MEDIUM,
    GRPC_PACK_HIGH,
};

/* grpc_pack_coding - the coding for a level, among those in the client's grpc-accept-encoding;
 * chosen as gRPC libraries do. */
enum coding grpc_pack_coding(enum grpc_pack_level level, const char *accepted, size_t len);

/* grpc_pack - compress a reply with s->packing. Takes r over and returns the reply to send
 * instead. That reply waits (reply->waits) while a helper compresses it; then grpc_answer_packed
 * is called. If there is no room for compression, r itself is returned. */
struct h2_reply *grpc_pack(struct grpc_stream *s, struct h2_reply *r);
