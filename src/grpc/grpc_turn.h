#pragma once
/* Calls that ask about the server: what they are told is made up at once, and is long, so where
 * a turn has had enough of that, or the client has not read what it was told before, they wait
 * for another turn. docs/internals/front-doors.md */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_conn;
struct grpc_stream;

/* grpc_turn_message - a whole message, as the method gets it: now, or, if it asks about the
 * server, perhaps in another turn.
 * buf  taken over where it is kept, and NULL then */
void grpc_turn_message(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);

/* grpc_turn_waits - whether calls wait for another turn, and for nothing else. grpc_turn_go_on -
 * in that turn. */
bool grpc_turn_waits(const struct grpc_conn *c);
void grpc_turn_go_on(struct grpc_conn *c);
