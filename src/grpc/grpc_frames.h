#pragma once
/* The frames of what a client sends, by their heads. The session reads them, too, but tells only
 * of what is whole and wanted: here is seen what began and is not whole, so that a client does
 * not take its time without end for it; how long a block of headers is that is only passed over;
 * how many frames say nothing. Pure; one thread at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPC_FRAMES_HEAD_BYTES 9u

/* The longest block of headers, as it is sent: whatever becomes of its call, it is decoded to
 * its end. */
#define GRPC_FRAMES_BLOCK_BYTES 65536u

/* The most frames without a message in between that say nothing: of data without data (or hardly
 * more than padding), of priorities that nobody keeps, of types that nobody knows. */
#define GRPC_FRAMES_TRIFLES_MAX 1000u

enum grpc_frames_result {
    GRPC_FRAMES_FINE,
    GRPC_FRAMES_BLOCK,   /* the block of headers is too long */
    GRPC_FRAMES_TRIFLES, /* too many frames say nothing */
};

struct grpc_frames {
    uint8_t head[GRPC_FRAMES_HEAD_BYTES]; /* head_got of its bytes came */
    uint8_t head_got;
    bool block;    /* a block of headers began and has not ended: a CONTINUATION must follow */
    uint32_t left; /* of the frame, or of the preface */
    uint32_t block_bytes; /* of the block of headers that came last */
    uint32_t trifles;     /* the owner sets it to 0 when a message came */
};

/* grpc_frames_init - before the preface. */
void grpc_frames_init(struct grpc_frames *f);

/* grpc_frames_take - bytes came. What is not FINE stays so: the connection is to end. */
enum grpc_frames_result grpc_frames_take(struct grpc_frames *f, const uint8_t *data, size_t len);

/* grpc_frames_partial - whether something began that is not whole. */
bool grpc_frames_partial(const struct grpc_frames *f);
