#pragma once
/* Messages of any length over a packet socket. The sender cuts them into packets and the
 * receiver joins them. Nearly all messages fit in one packet and are read in place. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISOLATE_FRAME_MAX ((size_t)64 << 20)

struct isolate_quota;

struct isolate_frame {
    struct isolate_quota *quota; /* charged for `whole`; NULL = no limit */
    uint8_t *room;               /* of one packet; the message starts at a multiple of 64 */
    uint8_t *whole;              /* of a longer message; NULL = none in progress */
    size_t len;
    size_t got;
    int fds[8]; /* descriptors received with it; -1 = none. Owned by the receiver */
};

enum isolate_frame_result {
    ISOLATE_FRAME_OK,
    ISOLATE_FRAME_NONE, /* nothing to receive now */
    ISOLATE_FRAME_GONE, /* the other end has closed, and everything that it sent was received */
    ISOLATE_FRAME_BAD,  /* not what a sender sends, or larger than the quota allows */
};

/* isolate_frame_init - quota is charged for messages longer than a packet, and outlives the
 * frame; NULL = no limit. */
void isolate_frame_init(struct isolate_frame *f, struct isolate_quota *quota);
void isolate_frame_fini(struct isolate_frame *f);

/* isolate_frame_send - send one message, which is not empty; waits for room. Only one thread at
 * a time may use a descriptor.
 * fds      fd_count descriptors to send with it
 * returns  false: the other end has closed, or the message is longer than ISOLATE_FRAME_MAX */
bool isolate_frame_send(int fd, const void *bytes, size_t len, const int *fds, unsigned fd_count);

/* isolate_frame_try_send - send a message that fits in one packet; never waits. */
bool isolate_frame_try_send(int fd, const void *bytes, size_t len);

/* isolate_frame_receive - receive the next message.
 * with_fds  keep received descriptors in f->fds; else they are closed
 * wait      wait for it
 * ret       valid until the next call; starts at a multiple of 64 */
enum isolate_frame_result isolate_frame_receive(struct isolate_frame *f, int fd, bool with_fds,
                                                bool wait, const uint8_t **ret, size_t *ret_len);
