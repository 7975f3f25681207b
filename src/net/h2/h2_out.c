#include "net/h2/h2_out.h"

#include "base/mem.h"
#include "net/tls/wire.h"

#include <string.h>

/* Payload up to this size is copied after the frame header, because that is cheaper than a
 * separate piece. */
#define COPY_BYTES ((size_t)4096)

void h2_out_init(struct h2_out *o)
{
    *o = (struct h2_out){0};
    o->last_sent = &o->sent;
}

/* Frees the replies whose last byte was written. */
static void free_written(struct h2_out *o, uint64_t written)
{
    while (o->sent && o->sent->end <= written) {
        struct h2_reply *r = o->sent;
        o->sent = r->next;
        if (!o->sent)
            o->last_sent = &o->sent;
        r->free_fn(r);
    }
}

static void drop_kept(struct h2_out *o)
{
    mem_free(o->pieces);
    mem_free(o->bytes);
    o->pieces = NULL;
    o->bytes = NULL;
}

void h2_out_fini(struct h2_out *o)
{
    drop_kept(o);
    free_written(o, UINT64_MAX);
}

static void refer(struct h2_batch *b, const void *data, size_t n)
{
    b->pieces[b->count++] = (struct iovec){(void *)(uintptr_t)data, n};
}

void h2_out_copy(struct h2_out *o, struct h2_batch *b, const void *data, size_t n)
{
    uint8_t *to = b->bytes + b->used;
    memcpy(to, data, n);
    b->used += n;
    o->queued += n;
    struct iovec *last = b->count ? &b->pieces[b->count - 1] : NULL;
    if (last && (uint8_t *)last->iov_base + last->iov_len == to)
        last->iov_len += n;
    else
        refer(b, to, n);
}

/* The most pieces for n bytes of the reply, including the header. */
static size_t pieces_needed(const struct h2_reply *r, size_t n)
{
    size_t count = 1;
    size_t offset = r->offset;
    for (uint32_t i = r->at; n > 0 && i < r->piece_count; i++) {
        size_t here = r->pieces[i].iov_len - offset;
        n -= here < n ? here : n;
        offset = 0;
        count++;
    }
    return count;
}

bool h2_out_reply(struct h2_out *o, struct h2_batch *b, const void *head, size_t head_bytes,
                  struct h2_reply *r, size_t n)
{
    if (!h2_out_has_room(b) || pieces_needed(r, n) > H2_OUT_PIECES - b->count)
        return false;
    h2_out_copy(o, b, head, head_bytes);
    r->left -= n;
    while (n > 0) {
        const struct iovec *piece = &r->pieces[r->at];
        size_t here = piece->iov_len - r->offset;
        if (here > n)
            here = n;
        const uint8_t *data = (const uint8_t *)piece->iov_base + r->offset;
        if (here <= COPY_BYTES && here <= H2_OUT_BYTES - b->used) {
            h2_out_copy(o, b, data, here);
        } else {
            refer(b, data, here);
            o->queued += here;
            r->referenced = true;
            r->end = o->queued;
        }
        n -= here;
        r->offset += here;
        if (r->offset == piece->iov_len) {
            r->at++;
            r->offset = 0;
        }
    }
    return true;
}

void h2_out_retire(struct h2_out *o, struct h2_reply *r)
{
    if (!r->referenced || r->end <= o->written) {
        r->free_fn(r);
        return;
    }
    r->next = NULL;
    *o->last_sent = r;
    o->last_sent = &r->next;
}

/* Keeps the rest of pieces[0..count). The copied part is copied again, because the next
 * connection uses the worker's batch. */
static void h2_out_keep(struct h2_out *o, const struct h2_batch *b, const struct iovec *pieces,
                        uint32_t count)
{
    size_t copied = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *base = pieces[i].iov_base;
        if (base >= b->bytes && base < b->bytes + b->used)
            copied += pieces[i].iov_len;
    }
    o->pieces = mem_alloc(count * sizeof(*o->pieces));
    o->bytes = mem_alloc(copied + 1);
    o->at = 0;
    o->count = count;
    uint8_t *to = o->bytes;
    for (uint32_t i = 0; i < count; i++) {
        o->pieces[i] = pieces[i];
        const uint8_t *base = pieces[i].iov_base;
        if (base < b->bytes || base >= b->bytes + b->used)
            continue;
        memcpy(to, base, pieces[i].iov_len);
        o->pieces[i].iov_base = to;
        to += pieces[i].iov_len;
    }
}

/* Removes n written bytes from the front. Returns how many pieces are done. */
static uint32_t h2_out_advance(struct iovec *pieces, uint32_t count, size_t n)
{
    uint32_t done = 0;
    while (done < count && n >= pieces[done].iov_len)
        n -= pieces[done++].iov_len;
    if (n > 0) {
        pieces[done].iov_base = (uint8_t *)pieces[done].iov_base + n;
        pieces[done].iov_len -= n;
    }
    return done;
}

bool h2_out_write(struct h2_out *o, struct h2_batch *b, int fd, struct tls_conn *tls)
{
    ssize_t n = wire_write(fd, tls, b->pieces, (int)b->count);
    if (n >= 0) {
        o->written += (uint64_t)n;
        uint32_t done = h2_out_advance(b->pieces, b->count, (size_t)n);
        if (done < b->count)
            h2_out_keep(o, b, b->pieces + done, b->count - done);
        free_written(o, o->written);
    }
    b->count = 0;
    b->used = 0;
    return n >= 0;
}

bool h2_out_resume(struct h2_out *o, int fd, struct tls_conn *tls)
{
    ssize_t n = wire_write(fd, tls, o->pieces + o->at, (int)(o->count - o->at));
    if (n < 0)
        return false;
    o->written += (uint64_t)n;
    o->at += h2_out_advance(o->pieces + o->at, o->count - o->at, (size_t)n);
    if (o->at == o->count)
        drop_kept(o);
    free_written(o, o->written);
    return true;
}
