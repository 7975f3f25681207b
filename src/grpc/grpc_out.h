#pragma once
/* What a connection writes: frames are gathered into one batch a worker, large payloads by
 * reference, and go out with one system call; only what the socket does not take is kept, by the
 * connection. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct tls_conn;

#define GRPC_OUT_PIECES 512u
#define GRPC_OUT_BYTES  ((size_t)65536)
/* Room that a frame of control needs at most. */
#define GRPC_OUT_FRAME_BYTES ((size_t)16384 + 64)

/* A message on its way out: runs of bytes, and what keeps them. Made by whoever encodes it,
 * freed once it is written. */
struct grpc_reply {
    struct grpc_reply *next;
    const struct iovec *pieces;
    uint32_t piece_count;
    uint32_t at;   /* the piece that goes on, */
    size_t offset; /* from here */
    uint64_t left; /* bytes not gathered yet, the 5-byte prefix included */
    uint64_t held; /* bytes that it keeps from others until it is freed */
    /* once gathered: where its last byte by reference lies in the connection's stream of bytes */
    uint64_t end;
    bool referenced; /* some of its bytes went out by reference */
    bool waits;      /* its pieces are not known yet, and `left` is what they will be at most */
    void (*free_fn)(struct grpc_reply *r);
};

/* A worker's batch: used by one connection at a time, empty between them. */
struct grpc_batch {
    struct iovec pieces[GRPC_OUT_PIECES];
    uint32_t count;
    size_t used;
    uint8_t bytes[GRPC_OUT_BYTES];
};

/* A connection's side. */
struct grpc_out {
    uint64_t queued;  /* bytes gathered since the connection began */
    uint64_t written; /* of them taken by the socket */
    /* what is left of a batch that was not taken whole; NULL when nothing is */
    struct iovec *pieces;
    uint32_t at;
    uint32_t count;
    uint8_t *bytes;          /* its copied part */
    struct grpc_reply *sent; /* gathered by reference, not written yet; in order */
    struct grpc_reply **last_sent;
};

void grpc_out_init(struct grpc_out *o);

/* grpc_out_fini - frees the replies that wait. */
void grpc_out_fini(struct grpc_out *o);

/* grpc_out_has_room - for another frame without payload by reference. */
static inline bool grpc_out_has_room(const struct grpc_batch *b)
{
    return b->count < GRPC_OUT_PIECES - 2 && GRPC_OUT_BYTES - b->used >= GRPC_OUT_FRAME_BYTES;
}

/* grpc_out_copy - add bytes; there must be room. */
void grpc_out_copy(struct grpc_out *o, struct grpc_batch *b, const void *data, size_t n);

/* grpc_out_reply - add the next n bytes of a reply, behind a frame header of head_bytes.
 * returns  false, and nothing was added, when the batch must be written first */
bool grpc_out_reply(struct grpc_out *o, struct grpc_batch *b, const void *head, size_t head_bytes,
                    struct grpc_reply *r, size_t n);

/* grpc_out_retire - a reply of which no more will be gathered: freed as soon as no byte of it
 * waits to be written. */
void grpc_out_retire(struct grpc_out *o, struct grpc_reply *r);

/* grpc_out_write - write the batch, which is empty afterwards; what the socket does not take is
 * kept.
 * returns  false when the connection is broken */
bool grpc_out_write(struct grpc_out *o, struct grpc_batch *b, int fd, struct tls_conn *tls);

/* grpc_out_waits - a batch was not taken whole: write no other one before grpc_out_resume has
 * written it. */
static inline bool grpc_out_waits(const struct grpc_out *o)
{
    return o->pieces != NULL;
}

/* grpc_out_resume - go on with what was kept.
 * returns  false when the connection is broken */
bool grpc_out_resume(struct grpc_out *o, int fd, struct tls_conn *tls);
