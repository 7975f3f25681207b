#pragma once
/* Where bytes are read to while a large message comes in: straight to their place in the message's
 * buffer, with what stands between them, the heads of DATA frames, beside it. The guess is that the
 * client goes on with frames as long as the last one; where it did not, what was read behind the
 * first wrong head must be copied out of the way before it is used. */
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define GRPC_SCATTER_FRAMES 32u
#define GRPC_SCATTER_HEAD   9u
#define GRPC_SCATTER_BYTES \
    ((size_t)512 << 10) /* of the message: a plan that has so many is long enough */

struct grpc_scatter {
    struct iovec pieces[2 * GRPC_SCATTER_FRAMES + 1];
    uint32_t count;
    uint8_t heads[GRPC_SCATTER_FRAMES][GRPC_SCATTER_HEAD];
};

/* grpc_scatter_plan - fill in the pieces.
 * to, left     the message's bytes that are still missing, or the first of them, with which the
 *              guess ends; 0 = all goes to rest
 * frame_left   of them in the current frame, which has no padding; 0 = a frame's head comes next
 * frame_bytes  length of the last DATA frame; > 0
 * rest         where bytes behind the message go, or behind what is planned of it */
void grpc_scatter_plan(struct grpc_scatter *s, uint8_t *to, size_t left, size_t frame_left,
                       size_t frame_bytes, void *rest, size_t rest_bytes);

/* grpc_scatter_check - after n bytes were read into the pieces.
 * stream   whose message it is
 * returns  how many bytes are what they were guessed to be; those behind them are not in place */
size_t grpc_scatter_check(const struct grpc_scatter *s, size_t n, uint32_t stream);

/* grpc_scatter_copy - copy the bytes [from, to) of those that were read. */
void grpc_scatter_copy(const struct grpc_scatter *s, size_t from, size_t to, uint8_t *out);

/* grpc_scatter_rest - how many of n bytes that were read went to `rest`. */
size_t grpc_scatter_rest(const struct grpc_scatter *s, size_t n);
