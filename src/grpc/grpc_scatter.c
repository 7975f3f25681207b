#include "grpc/grpc_scatter.h"

#include <stdbool.h>
#include <string.h>

#define TYPE_DATA   0
#define FLAG_PADDED 0x8

static size_t scatter_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void grpc_scatter_plan(struct grpc_scatter *s, uint8_t *to, size_t left, size_t room,
                       size_t frame_left, size_t frame_bytes, void *rest, size_t rest_bytes)
{
    size_t planned = 0;
    size_t heads = 0;
    s->count = 0;
    room = scatter_smaller(room, left);
    for (uint32_t frame = 0;
         frame < GRPC_SCATTER_FRAMES && planned < room && planned < GRPC_SCATTER_BYTES; frame++) {
        if (frame_left == 0) {
            frame_left = scatter_smaller(frame_bytes, left - planned);
            if (frame_left > room - planned)
                break;
            s->pieces[s->count++] = (struct iovec){s->heads[frame], GRPC_SCATTER_HEAD};
            heads += GRPC_SCATTER_HEAD;
        }
        size_t n = scatter_smaller(frame_left, room - planned);
        s->pieces[s->count++] = (struct iovec){to + planned, n};
        planned += n;
        frame_left = 0;
    }
    s->planned = planned + heads;
    if (!planned || planned == left)
        s->pieces[s->count++] = (struct iovec){rest, rest_bytes};
}

static bool is_head(const struct grpc_scatter *s, const void *piece)
{
    const uint8_t *at = piece;
    const uint8_t *heads = (const uint8_t *)s->heads;
    return at >= heads && at < heads + sizeof(s->heads);
}

/* True for the header of a DATA frame of the stream with that length. */
static bool as_guessed(const uint8_t *head, size_t bytes, uint32_t stream)
{
    size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    uint32_t id =
        (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
    return length == bytes && head[3] == TYPE_DATA && !(head[4] & FLAG_PADDED) && id == stream;
}

size_t grpc_scatter_check(const struct grpc_scatter *s, size_t n, uint32_t stream)
{
    size_t seen = 0;
    for (uint32_t i = 0; i + 1 < s->count && seen + GRPC_SCATTER_HEAD <= n; i++) {
        const struct iovec *p = &s->pieces[i];
        if (is_head(s, p->iov_base) && !as_guessed(p->iov_base, p[1].iov_len, stream))
            return seen;
        seen += p->iov_len;
    }
    return n;
}

void grpc_scatter_copy(const struct grpc_scatter *s, size_t from, size_t to, uint8_t *out)
{
    size_t at = 0;
    for (uint32_t i = 0; i < s->count && at < to; i++) {
        const struct iovec *p = &s->pieces[i];
        size_t end = at + p->iov_len;
        size_t first = from > at ? from : at;
        size_t last = end < to ? end : to;
        if (first < last) {
            memcpy(out, (const uint8_t *)p->iov_base + (first - at), last - first);
            out += last - first;
        }
        at = end;
    }
}

size_t grpc_scatter_rest(const struct grpc_scatter *s, size_t n)
{
    return n > s->planned ? n - s->planned : 0;
}
