#pragma once
/* Decompression of incoming messages. Worker's thread only. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_stream;
struct grpc_unpack;

/* grpc_unpack - decompress a message by s->encoding, then give it to the method: at once if it
 * is small, else after a helper has finished; s->unpacking is set meanwhile. Invalid data ends
 * the call.
 * buf  the buffer of data, taken over; NULL = received bytes that are soon overwritten */
void grpc_unpack(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf *buf);

/* grpc_unpack_forget - the stream is gone. */
void grpc_unpack_forget(struct grpc_unpack *u);
