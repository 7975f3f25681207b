#pragma once
/* Delays that tests of clients ask for by variables of the environment (docs/user/debugging.md).
 * Timers of the connection's loop: no thread waits. Nothing of this exists while no variable is
 * set. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct grpc_reply;
struct grpc_stream;

/* What is asked for; 0 = nothing. */
struct grpc_delays {
    time_ns process; /* before a ModelInfer call is looked at */
    /* before each response of a decoupled model is written to its ModelStreamInfer call, one
     * after the other */
    time_ns response;
    /* before each response of a ModelStreamInfer call is seen, one after the other */
    time_ns complete;
    time_ns control; /* before the answer of any other unary call is written */
};

typedef void (*grpc_delay_take_fn)(struct grpc_stream *s, const uint8_t *data, size_t len,
                                   struct buf **buf);

/* grpc_delay_read - the delays of this process, NULL = there are none. The first call reads the
 * environment. */
const struct grpc_delays *grpc_delay_read(void);

/* grpc_delay_message - keep the message of a unary call, a copy, and hand it to `take` later.
 * false: it is not to be kept. */
bool grpc_delay_message(struct grpc_stream *s, const uint8_t *data, size_t len,
                        grpc_delay_take_fn take);

/* grpc_delay_response - a response of a ModelStreamInfer call came: what the call sends from
 * here on goes later.
 * written  it will be written, and its model is decoupled */
void grpc_delay_response(struct grpc_stream *s, bool written);

/* grpc_delay_reply, grpc_delay_end - what is to be sent goes later; false: at once. The reply is
 * taken over, the message is copied. */
bool grpc_delay_reply(struct grpc_stream *s, struct grpc_reply *r);
bool grpc_delay_end(struct grpc_stream *s, int status, const char *message);

/* grpc_delay_drop - the stream is closed. */
void grpc_delay_drop(struct grpc_stream *s);
