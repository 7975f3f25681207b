#pragma once
/* Calls that ask about the server. Their answers are made at once and may be long. So if a turn
 * has made enough of them, or the client has not read earlier ones, they wait for another turn.
 * docs/internals/front-doors.md */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_conn;
struct grpc_stream;

/* grpc_turn_message - give a whole message to the method: now or, if it asks about the server,
 * perhaps in a later turn.
 * buf  taken over if it is kept, and NULL then */
void grpc_turn_message(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);

/* grpc_turn_waits - true if calls wait only for another turn.
 * grpc_turn_go_on - call it in that turn. */
bool grpc_turn_waits(const struct grpc_conn *c);
void grpc_turn_go_on(struct grpc_conn *c);
