#pragma once
/* Plans where received bytes go while a large message comes in: directly to their place in the
 * message's buffer, with the DATA frame headers between them read into separate memory. The plan
 * guesses that the next frames have the length of the last one. If that is wrong, the bytes
 * after the first wrong header must be copied away before they are used. */
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define GRPC_SCATTER_FRAMES 32u
#define GRPC_SCATTER_HEAD   9u
/* bytes of the message; a plan with this many is long enough */
#define GRPC_SCATTER_BYTES ((size_t)512 << 10)

struct grpc_scatter {
    struct iovec pieces[2 * GRPC_SCATTER_FRAMES + 1];
    uint32_t count;
    size_t planned; /* bytes of all pieces except `rest`, with headers */
    uint8_t heads[GRPC_SCATTER_FRAMES][GRPC_SCATTER_HEAD];
};

/* grpc_scatter_plan - fill in the pieces.
 * to, left     where the missing bytes of the message go, and their number
 * room         at most so many of them are planned; the guess ends at a frame's end, because the
 *              header of a frame says the length of all of it. 0 = everything goes to rest
 * frame_left   how many of them are in the current frame, which has no padding; 0 = a frame
 *              header comes next
 * frame_bytes  length of the last DATA frame; > 0
 * rest         where bytes go that are not planned: those after the message, or all. If a part of
 *              the message is planned, the next plan reads on behind it, and rest is not used */
void grpc_scatter_plan(struct grpc_scatter *s, uint8_t *to, size_t left, size_t room,
                       size_t frame_left, size_t frame_bytes, void *rest, size_t rest_bytes);

/* grpc_scatter_check - call it after n bytes were read into the pieces.
 * stream   the stream of the message
 * returns  how many bytes are as guessed; the bytes after them are not at their place */
size_t grpc_scatter_check(const struct grpc_scatter *s, size_t n, uint32_t stream);

/* grpc_scatter_copy - copy the read bytes [from, to). */
void grpc_scatter_copy(const struct grpc_scatter *s, size_t from, size_t to, uint8_t *out);

/* grpc_scatter_rest - how many of n read bytes went to `rest`. */
size_t grpc_scatter_rest(const struct grpc_scatter *s, size_t n);
