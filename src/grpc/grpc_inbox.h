#pragma once
/* The messages of one call as they come in: a 5-byte prefix (compressed or not, and the size),
 * then the bytes. A message that lies whole in the bytes received is handed on where it lies;
 * else it is copied once, into a buffer of exactly its size. */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPC_INBOX_PREFIX    5u
#define GRPC_INBOX_MAX_BYTES ((uint32_t)INT32_MAX) /* the largest message */

struct budget_account;

struct grpc_inbox {
    uint8_t prefix[GRPC_INBOX_PREFIX];
    uint8_t prefix_got;
    bool compressed;
    uint32_t size; /* of the message, known once the prefix is there */
    uint32_t got;
    const uint8_t *data; /* the message; in buf where there is one */
    struct buf *buf;
};

enum grpc_inbox_result {
    GRPC_INBOX_MORE, /* all bytes taken, the message goes on */
    /* data, size, compressed and buf tell of a message: grpc_inbox_next before the next feed */
    GRPC_INBOX_WHOLE,
    GRPC_INBOX_TOO_LARGE, /* size is over the limit */
    GRPC_INBOX_BAD,       /* the prefix has flags that mean nothing */
    GRPC_INBOX_NO_ROOM,   /* ret_err says why */
};

/* grpc_inbox_feed - take bytes.
 * account    of the connection: holds a short message
 * data, len  advanced over what was taken
 * tensors    the message is a ModelInferRequest: place its first large tensor on 64 bytes
 * ret_err    set for NO_ROOM, the caller's */
enum grpc_inbox_result grpc_inbox_feed(struct grpc_inbox *in, struct budget_account *account,
                                       const uint8_t **data, size_t *len, bool tensors,
                                       struct err **ret_err);

/* grpc_inbox_keep - copy a whole message that lies in received bytes into a buffer, so that it
 * outlives them.
 * account  of the connection
 * errors   UNAVAILABLE as pool_buf_of */
struct err *grpc_inbox_keep(struct grpc_inbox *in, struct budget_account *account);

/* grpc_inbox_left - bytes of the current message that are still to come; 0 between messages. */
static inline uint32_t grpc_inbox_left(const struct grpc_inbox *in)
{
    return in->size - in->got;
}

/* grpc_inbox_partial - a message has begun and is not whole. */
static inline bool grpc_inbox_partial(const struct grpc_inbox *in)
{
    return in->prefix_got > 0 && (in->prefix_got < GRPC_INBOX_PREFIX || in->got < in->size);
}

/* grpc_inbox_place - where the next byte of a message that is being received into a buffer
 * belongs; NULL when there is none. Bytes that already are there when they are fed need no copy. */
uint8_t *grpc_inbox_place(const struct grpc_inbox *in);

/* grpc_inbox_room - how many bytes may be written to that place, at most `most`, though it is
 * not known yet whether they are of the message: those are charged for. */
size_t grpc_inbox_room(const struct grpc_inbox *in, size_t most);

/* grpc_inbox_next - drop the current message, if any. Also the destructor. */
void grpc_inbox_next(struct grpc_inbox *in);
