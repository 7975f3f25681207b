#include "grpc/grpc_inbox.h"

#include "base/budget.h"
#include "codec/infer_pb.h"
#include "os/pool.h"

#include <inttypes.h>
#include <string.h>

#define ALIGN       ((size_t)64)
#define GUESS_LEAST ((size_t)16384) /* an ordinary frame */

static void take_prefix(struct grpc_inbox *in, const uint8_t **data, size_t *len)
{
    size_t n = GRPC_PREFIX_BYTES - in->prefix_got;
    if (n > *len)
        n = *len;
    memcpy(in->prefix + in->prefix_got, *data, n);
    in->prefix_got = (uint8_t)(in->prefix_got + n);
    *data += n;
    *len -= n;
    in->compressed = in->prefix[0] == 1;
    in->size = grpc_prefix_len(in->prefix);
}

/* Reserves the buffer. It begins so far before a multiple of 64 that the tensor which follows
 * the received bytes is aligned to 64. */
static struct err *grpc_inbox_reserve(struct grpc_inbox *in, struct budget_account *account,
                                      const uint8_t *data, size_t len, bool tensors)
{
    if (in->size > budget_limit())
        return budget_busy(in->size, "no room for a message of %" PRIu32 " bytes", in->size);
    size_t offset =
        tensors && !in->compressed ? infer_pb_raw_offset(data, len < in->size ? len : in->size) : 0;
    size_t shift = -offset & (ALIGN - 1);
    struct err *e = pool_buf_of(account, in->size + shift, shift, &in->buf);
    if (!e)
        in->data = in->buf->data + shift;
    return e;
}

/* The position of the next byte in the buffer. */
static size_t written(const struct grpc_inbox *in)
{
    return (size_t)(in->data - in->buf->data) + in->got;
}

enum grpc_inbox_result grpc_inbox_feed(struct grpc_inbox *in, struct budget_account *account,
                                       const uint8_t **data, size_t *len, uint32_t max_bytes,
                                       bool tensors, struct err **ret_err)
{
    if (in->prefix_got < GRPC_PREFIX_BYTES) {
        take_prefix(in, data, len);
        if (in->prefix_got < GRPC_PREFIX_BYTES)
            return GRPC_INBOX_MORE;
        if (in->prefix[0] > 1)
            return GRPC_INBOX_BAD;
        if (in->size > max_bytes)
            return GRPC_INBOX_TOO_LARGE;
    }
    if (!in->data) {
        if (*len >= in->size) {
            in->data = *data;
            in->got = in->size;
            *data += in->size;
            *len -= in->size;
            return GRPC_INBOX_WHOLE;
        }
        if (!*len)
            /* without bytes its place is unknown, and there is nothing to hold */
            return GRPC_INBOX_MORE;
        struct err *e = grpc_inbox_reserve(in, account, *data, *len, tensors);
        if (e) {
            *ret_err = e;
            return GRPC_INBOX_NO_ROOM;
        }
    }
    size_t n = in->size - in->got;
    if (n > *len)
        n = *len;
    size_t at = written(in);
    struct err *e = pool_arrived(in->buf, at + n);
    if (e) {
        *ret_err = e;
        return GRPC_INBOX_NO_ROOM;
    }
    uint8_t *to = in->buf->data + at;
    if (to != *data)
        memcpy(to, *data, n);
    in->got += (uint32_t)n;
    *data += n;
    *len -= n;
    return in->got == in->size ? GRPC_INBOX_WHOLE : GRPC_INBOX_MORE;
}

struct err *grpc_inbox_keep(struct grpc_inbox *in, struct budget_account *account)
{
    if (in->buf)
        return NULL;
    size_t size = in->size ? in->size : 1;
    struct err *e = pool_buf_of(account, size, size, &in->buf);
    if (e)
        return e;
    if (in->size)
        memcpy(in->buf->data, in->data, in->size);
    in->data = in->buf->data;
    return NULL;
}

uint8_t *grpc_inbox_place(const struct grpc_inbox *in)
{
    return in->buf && in->got < in->size ? in->buf->data + written(in) : NULL;
}

size_t grpc_inbox_room(const struct grpc_inbox *in, size_t most)
{
    if (!grpc_inbox_place(in))
        return 0;
    size_t at = written(in);
    size_t left = grpc_inbox_left(in);
    if (most > left)
        most = left;
    /* Bytes that do not come are charged, too: no more than have come already. */
    size_t guess = at > GUESS_LEAST ? at : GUESS_LEAST;
    if (most > guess)
        most = guess;
    size_t room = pool_room(in->buf, at + most) - at;
    return room < most ? room : most;
}

void grpc_inbox_next(struct grpc_inbox *in)
{
    buf_unref(in->buf);
    *in = (struct grpc_inbox){0};
}
