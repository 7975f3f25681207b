#pragma once
/* Messages of any length over a packet socket: cut into packets by the sender, put together by
 * the receiver. A frame of a packet's length, which nearly all have, is read where it was
 * received. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISOLATE_FRAME_MAX ((size_t)64 << 20)

struct isolate_quota;

struct isolate_frame {
    struct isolate_quota *quota; /* what `whole` counts toward; NULL = nothing */
    uint8_t *room;               /* of one packet, the message on 64 */
    uint8_t *whole;              /* of a longer one; NULL = none under way */
    size_t len;
    size_t got;
    int fds[8]; /* that came along; -1 = none. The receiver's */
};

enum isolate_frame_result {
    ISOLATE_FRAME_OK,
    ISOLATE_FRAME_NONE, /* nothing more to receive now */
    ISOLATE_FRAME_GONE, /* the other end is, and all that it sent was received */
    ISOLATE_FRAME_BAD,  /* not what a sender sends, or more than it may make us hold */
};

/* isolate_frame_init - quota is what messages longer than a packet count toward, and outlives
 * the frame; NULL = nothing. */
void isolate_frame_init(struct isolate_frame *f, struct isolate_quota *quota);
void isolate_frame_fini(struct isolate_frame *f);

/* isolate_frame_send - one message, never empty; waits for room. One thread at a time for a
 * descriptor.
 * fds      fd_count descriptors that go along
 * returns  false: the other end is gone, or the message is over ISOLATE_FRAME_MAX */
bool isolate_frame_send(int fd, const void *bytes, size_t len, const int *fds, unsigned fd_count);

/* isolate_frame_try_send - one message of a packet's length at most; never waits. */
bool isolate_frame_try_send(int fd, const void *bytes, size_t len);

/* isolate_frame_receive - the next message.
 * with_fds  take descriptors along into f->fds; else they are dropped
 * wait      for it
 * ret       valid until the next call; starts on 64 */
enum isolate_frame_result isolate_frame_receive(struct isolate_frame *f, int fd, bool with_fds,
                                                bool wait, const uint8_t **ret, size_t *ret_len);
