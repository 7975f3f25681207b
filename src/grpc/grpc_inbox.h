#pragma once
/* The incoming messages of one call: each has a 5-byte prefix (compressed or not, and the size),
 * then its bytes. A message that lies completely in the received bytes is used there; otherwise
 * it is copied once, into a buffer of exactly its size. */
#include "base/buf.h"
#include "base/err.h"
#include "codec/grpc_prefix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPC_INBOX_MAX_BYTES ((uint32_t)INT32_MAX) /* the largest message */

struct budget_account;

struct grpc_inbox {
    uint8_t prefix[GRPC_PREFIX_BYTES];
    uint8_t prefix_got;
    bool compressed;
    uint32_t size; /* of the message; known when the prefix is complete */
    uint32_t got;
    const uint8_t *data; /* the message; in buf if that is not NULL */
    struct buf *buf;
};

enum grpc_inbox_result {
    GRPC_INBOX_MORE, /* all bytes were taken, and the message is incomplete */
    /* data, size, compressed and buf describe a message: call grpc_inbox_next before the next
     * feed */
    GRPC_INBOX_WHOLE,
    GRPC_INBOX_TOO_LARGE, /* size is over the limit */
    GRPC_INBOX_BAD,       /* the prefix has unknown flags */
    GRPC_INBOX_NO_ROOM,   /* ret_err says why */
};

/* grpc_inbox_feed - take received bytes.
 * account    of the connection: charged for a short message
 * data, len  moved behind the bytes that were taken
 * max_bytes  the largest message, at most GRPC_INBOX_MAX_BYTES
 * tensors    the message is a ModelInferRequest: align its first large tensor to 64 bytes
 * ret_err    set for NO_ROOM, owned by the caller */
enum grpc_inbox_result grpc_inbox_feed(struct grpc_inbox *in, struct budget_account *account,
                                       const uint8_t **data, size_t *len, uint32_t max_bytes,
                                       bool tensors, struct err **ret_err);

/* grpc_inbox_keep - copy a whole message from the received bytes into a buffer, so that it lives
 * longer.
 * account  of the connection
 * errors   UNAVAILABLE as pool_buf_of */
struct err *grpc_inbox_keep(struct grpc_inbox *in, struct budget_account *account);

/* grpc_inbox_left - bytes of the current message still to come; 0 between messages. */
static inline uint32_t grpc_inbox_left(const struct grpc_inbox *in)
{
    return in->size - in->got;
}

/* grpc_inbox_partial - true if a message is incomplete. */
static inline bool grpc_inbox_partial(const struct grpc_inbox *in)
{
    return in->prefix_got > 0 && (in->prefix_got < GRPC_PREFIX_BYTES || in->got < in->size);
}

/* grpc_inbox_place - where the next byte belongs if a message is being received into a buffer;
 * else NULL. Bytes that are already at that place when they are fed are not copied. */
uint8_t *grpc_inbox_place(const struct grpc_inbox *in);

/* grpc_inbox_room - how many bytes, at most `most`, may be written to that place although they
 * may not belong to the message: they are charged. */
size_t grpc_inbox_room(const struct grpc_inbox *in, size_t most);

/* grpc_inbox_next - free the current message, if any. Also the destructor. */
void grpc_inbox_next(struct grpc_inbox *in);
