#pragma once
/* Messages that go out compressed. Worker's thread only. */
#include "codec/expand.h"

#include <stddef.h>

struct grpc_reply;
struct grpc_stream;

/* How much --grpc-infer-response-compression-level asks for. */
enum grpc_pack_level {
    GRPC_PACK_NONE,
    GRPC_PACK_LOW,
    GRPC_PACK_MEDIUM,
    GRPC_PACK_HIGH,
};

/* grpc_pack_coding - the coding for a level, of those that the client names in
 * grpc-accept-encoding; as libraries of gRPC choose. */
enum expand_coding grpc_pack_coding(enum grpc_pack_level level, const char *accepted, size_t len);

/* grpc_pack - a reply to send in place of r, which it takes over: compressed with s->packing. It
 * waits (reply->waits) while a helper is at it, and then calls grpc_answer_packed. r itself when
 * there is no room to compress. */
struct grpc_reply *grpc_pack(struct grpc_stream *s, struct grpc_reply *r);
