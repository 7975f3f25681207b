#pragma once
/* Writes the output of a connection. Frames are collected into one batch per worker, large
 * payloads by reference, and written with one system call. Only what the socket does not take is
 * kept, by the connection. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct tls_conn;

#define H2_OUT_PIECES 512u
#define H2_OUT_BYTES  ((size_t)65536)
/* The most room that a control frame needs. */
#define H2_OUT_FRAME_BYTES ((size_t)16384 + 64)

/* An outgoing message: runs of bytes, and their owner. Made by the encoder, freed when it is
 * written. */
struct h2_reply {
    struct h2_reply *next;
    const struct iovec *pieces;
    uint32_t piece_count;
    uint32_t at;   /* the current piece */
    size_t offset; /* the position in that piece */
    uint64_t left; /* bytes not collected yet */
    uint64_t held; /* bytes of memory that it holds until it is freed */
    /* after it was collected: the position of its last referenced byte in the connection's byte
     * stream */
    uint64_t end;
    bool referenced; /* some of its bytes were sent by reference */
    bool waits;      /* its pieces are not known yet; `left` is an upper limit then */
    void (*free_fn)(struct h2_reply *r);
};

/* A worker's batch: one connection at a time uses it, and leaves it empty. */
struct h2_batch {
    struct iovec pieces[H2_OUT_PIECES];
    uint32_t count;
    size_t used;
    uint8_t bytes[H2_OUT_BYTES];
};

/* The output of a connection. */
struct h2_out {
    uint64_t queued;  /* bytes collected since the connection began */
    uint64_t written; /* how many of these the socket took */
    /* the rest of a batch that was not taken completely; NULL = none */
    struct iovec *pieces;
    uint32_t at;
    uint32_t count;
    uint8_t *bytes;        /* the copied part of that rest */
    struct h2_reply *sent; /* collected by reference and not written yet; in order */
    struct h2_reply **last_sent;
};

void h2_out_init(struct h2_out *o);

/* h2_out_fini - free the waiting replies. */
void h2_out_fini(struct h2_out *o);

/* h2_out_has_room - true if there is room for a frame without referenced payload. */
static inline bool h2_out_has_room(const struct h2_batch *b)
{
    return b->count < H2_OUT_PIECES - 2 && H2_OUT_BYTES - b->used >= H2_OUT_FRAME_BYTES;
}

/* h2_out_copy - add a copy of bytes; there must be room. */
void h2_out_copy(struct h2_out *o, struct h2_batch *b, const void *data, size_t n);

/* h2_out_reply - add the next n bytes of a reply, after a frame header of head_bytes.
 * returns  false, and nothing was added, if the batch must be written first */
bool h2_out_reply(struct h2_out *o, struct h2_batch *b, const void *head, size_t head_bytes,
                  struct h2_reply *r, size_t n);

/* h2_out_retire - the whole reply was collected: free it as soon as none of its bytes waits to
 * be written. */
void h2_out_retire(struct h2_out *o, struct h2_reply *r);

/* h2_out_write - write the batch, which is then empty; what the socket does not take is kept.
 * returns  false when the connection is broken */
bool h2_out_write(struct h2_out *o, struct h2_batch *b, int fd, struct tls_conn *tls);

/* h2_out_waits - true if a batch was not taken completely: write no other batch before
 * h2_out_resume has written it. */
static inline bool h2_out_waits(const struct h2_out *o)
{
    return o->pieces != NULL;
}

/* h2_out_resume - continue with what was kept.
 * returns  false when the connection is broken */
bool h2_out_resume(struct h2_out *o, int fd, struct tls_conn *tls);
