#include "isolate/wire/isolate_frame.h"

#include "base/mem.h"
#include "os/packet.h"
#include "isolate/wire/isolate_quota.h"

#include <string.h>

#define ALIGN 64u
/* in front of each packet: the bytes of the message from this packet on */
#define HEAD_BYTES sizeof(uint64_t)
#define BODY_BYTES (PACKET_MAX_BYTES - HEAD_BYTES)

_Static_assert(sizeof(((struct isolate_frame *)0)->fds) == PACKET_MAX_FDS * sizeof(int), "");

void isolate_frame_init(struct isolate_frame *f, struct isolate_quota *quota)
{
    *f = (struct isolate_frame){.quota = quota,
                                .room = mem_alloc_aligned(ALIGN + BODY_BYTES, ALIGN)};
    memset(f->fds, 0xff, sizeof(f->fds));
}

static void drop_whole(struct isolate_frame *f)
{
    if (f->whole)
        isolate_quota_give(f->quota, f->len);
    mem_free(f->whole);
    f->whole = NULL;
}

void isolate_frame_fini(struct isolate_frame *f)
{
    drop_whole(f);
    mem_free(f->room);
    *f = (struct isolate_frame){0};
}

bool isolate_frame_send(int fd, const void *bytes, size_t len, const int *fds, unsigned fd_count)
{
    if (len > ISOLATE_FRAME_MAX)
        return false;
    const uint8_t *at = bytes;
    while (len) {
        uint64_t left = len;
        size_t n = len < BODY_BYTES ? len : BODY_BYTES;
        struct iovec pieces[2] = {{&left, sizeof(left)}, {(void *)(uintptr_t)at, n}};
        if (!packet_send(fd, pieces, 2, fds, fd_count, true))
            return false;
        fd_count = 0;
        at += n;
        len -= n;
    }
    return true;
}

bool isolate_frame_try_send(int fd, const void *bytes, size_t len)
{
    uint64_t left = len;
    struct iovec pieces[2] = {{&left, sizeof(left)}, {(void *)(uintptr_t)bytes, len}};
    return len && len <= BODY_BYTES && packet_send(fd, pieces, 2, NULL, 0, false);
}

/* Adds a packet to a message that is longer than one packet. */
static enum isolate_frame_result add_part(struct isolate_frame *f, uint64_t left, size_t n)
{
    const uint8_t *body = f->room + ALIGN;
    if (!f->whole) {
        if (left > ISOLATE_FRAME_MAX || !isolate_quota_take(f->quota, left))
            return ISOLATE_FRAME_BAD;
        f->whole = mem_try_alloc(left, ALIGN);
        if (!f->whole)
            isolate_quota_give(f->quota, left);
        f->len = left;
        f->got = 0;
    }
    if (!f->whole || left != f->len - f->got || n > left)
        return ISOLATE_FRAME_BAD;
    memcpy(f->whole + f->got, body, n);
    f->got += n;
    return ISOLATE_FRAME_OK;
}

enum isolate_frame_result isolate_frame_receive(struct isolate_frame *f, int fd, bool with_fds,
                                                bool wait, const uint8_t **ret, size_t *ret_len)
{
    if (f->whole && f->got == f->len)
        drop_whole(f);
    for (;;) {
        uint8_t *packet = f->room + ALIGN - HEAD_BYTES;
        ssize_t got = packet_receive(fd, packet, PACKET_MAX_BYTES,
                                     with_fds && !f->whole ? f->fds : NULL, wait);
        if (got == 0)
            return ISOLATE_FRAME_GONE;
        if (got == PACKET_NONE)
            return ISOLATE_FRAME_NONE;
        if (got <= (ssize_t)HEAD_BYTES)
            return ISOLATE_FRAME_BAD;
        uint64_t left;
        memcpy(&left, packet, sizeof(left));
        size_t n = (size_t)got - HEAD_BYTES;
        if (!f->whole && left == n) {
            *ret = packet + HEAD_BYTES;
            *ret_len = n;
            return ISOLATE_FRAME_OK;
        }
        enum isolate_frame_result r = add_part(f, left, n);
        if (r == ISOLATE_FRAME_BAD)
            return r;
        if (f->got == f->len) {
            *ret = f->whole;
            *ret_len = f->len;
            return ISOLATE_FRAME_OK;
        }
    }
}
