#pragma once
/* Watches the frames that a client sends, by their headers. The session reports only frames that
 * are complete and needed. This sees incomplete frames, so that a client cannot take forever;
 * blocks of headers that are skipped but too long; and how many frames are useless. Pure; one
 * thread at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_FRAMES_HEAD_BYTES 9u

/* The longest block of headers as sent: every block is decoded to its end, whatever happens to
 * its call. */
#define H2_FRAMES_BLOCK_BYTES 65536u

/* The most useless frames without a message in between: DATA without data (or almost only
 * padding), priorities that are ignored, unknown types. */
#define H2_FRAMES_TRIFLES_MAX 1000u

enum h2_frames_result {
    H2_FRAMES_FINE,
    H2_FRAMES_BLOCK,   /* the block of headers is too long */
    H2_FRAMES_TRIFLES, /* too many useless frames */
};

struct h2_frames {
    uint8_t head[H2_FRAMES_HEAD_BYTES]; /* head_got bytes of it have come */
    uint8_t head_got;
    bool block;           /* a block of headers is incomplete: a CONTINUATION must follow */
    uint32_t left;        /* bytes left of the frame, or of the preface */
    uint32_t block_bytes; /* size of the last block of headers */
    uint32_t trifles;     /* number of useless frames; the owner sets it to 0 when a message came */
};

/* h2_frames_init - begin before the preface. */
void h2_frames_init(struct h2_frames *f);

/* h2_frames_take - handle received bytes. A result other than FINE is permanent: the
 * connection must end. */
enum h2_frames_result h2_frames_take(struct h2_frames *f, const uint8_t *data, size_t len);

/* h2_frames_partial - true if a frame or block is incomplete. */
bool h2_frames_partial(const struct h2_frames *f);
