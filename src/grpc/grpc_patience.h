#pragma once
/* How long a client may take to finish its handshake, to continue a message or frame that it
 * began, to read what is written to it, and to open its windows for waiting answers. What it
 * makes the server hold meanwhile is charged to the common budget. When the server stops, it is
 * DOOR_STALL for all of that (net/door.h). On the thread of the connection's worker. */
#include "os/clock.h"

struct grpc_conn;
struct loop_timer;

#define GRPC_PATIENCE TIME_S(60)

/* grpc_patience_watch - at the end of a turn: set the timer for what the client must do next. */
void grpc_patience_watch(struct grpc_conn *c);

/* grpc_patience_due - the function of c->timer: ends calls whose client does not go on with their
 * messages, or does not open their windows, and closes a connection whose client does not do
 * something else in time; the connection is gone then. */
void grpc_patience_due(struct loop_timer *t);
