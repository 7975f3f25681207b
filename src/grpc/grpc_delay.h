#pragma once
/* Delays for tests of clients, set by environment variables (docs/user/debugging.md). They use
 * timers of the connection's loop: no thread waits. Without these variables there is no cost. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct h2_reply;
struct grpc_stream;

/* The configured delays; 0 = none. */
struct grpc_delays {
    time_ns process; /* before a ModelInfer call is handled */
    /* before each response of a decoupled model to a ModelStreamInfer call is written, one after
     * the other */
    time_ns response;
    /* before each response to a ModelStreamInfer call is handled, one after the other */
    time_ns complete;
    time_ns control; /* before the answer of any other unary call is written */
};

typedef void (*grpc_delay_take_fn)(struct grpc_stream *s, const uint8_t *data, size_t len,
                                   struct buf **buf);

/* grpc_delay_read - the delays of this process; NULL = none. The first call reads the
 * environment. */
const struct grpc_delays *grpc_delay_read(void);

/* grpc_delay_message - copy the message of a unary call and pass it to `take` later. Returns
 * false if it is not delayed. */
bool grpc_delay_message(struct grpc_stream *s, const uint8_t *data, size_t len,
                        grpc_delay_take_fn take);

/* grpc_delay_response - a response to a ModelStreamInfer call came: what the call sends from
 * here on is delayed.
 * written  it will be written, and its model is decoupled */
void grpc_delay_response(struct grpc_stream *s, bool written);

/* grpc_delay_reply, grpc_delay_end - delay what is to be sent; false: send it at once. The reply
 * is taken over, the message is copied. */
bool grpc_delay_reply(struct grpc_stream *s, struct h2_reply *r);
bool grpc_delay_end(struct grpc_stream *s, int status, const char *message);

/* grpc_delay_drop - the stream is closed. */
void grpc_delay_drop(struct grpc_stream *s);
