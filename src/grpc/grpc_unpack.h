#pragma once
/* Messages that came compressed. Worker's thread only. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_stream;
struct grpc_unpack;

/* grpc_unpack - decompress a message by s->encoding, then give it to the method: at once when it
 * is small, else once a helper is through; s->unpacking is set meanwhile. What cannot be read
 * ends the call.
 * buf  what data lies in, taken over; NULL = received bytes that are soon gone */
void grpc_unpack(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf *buf);

/* grpc_unpack_forget - the stream is gone. */
void grpc_unpack_forget(struct grpc_unpack *u);
