#pragma once
/* How long a client may take: to finish its handshake, to go on with a message or a frame that
 * it began, to take what is written to it, and to open its windows where an answer waits for
 * that. What it makes us hold meanwhile is charged to everybody's budget. On the thread of the
 * connection's worker. */
#include "os/clock.h"

struct grpc_conn;
struct loop_timer;

#define GRPC_PATIENCE TIME_S(60)

/* grpc_patience_watch - at the end of a turn: see that what the client owes comes in time. */
void grpc_patience_watch(struct grpc_conn *c);

/* grpc_patience_due - c->timer: ends calls whose client does not open their windows, and closes
 * a connection whose client owes us something else; the connection is gone then. */
void grpc_patience_due(struct loop_timer *t);
