#include "grpc/grpc_pack.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/grpc_prefix.h"
#include "codec/grpc_text.h"
#include "codec/shrink.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "net/helpers.h"
#include "server/worker.h"

#include <string.h>

struct pack {
    struct helpers_job job;     /* first */
    struct grpc_stream *stream; /* NULL = the stream is gone */
    struct h2_reply reply;      /* the reply that is sent */
    struct iovec piece;
    struct h2_reply *plain;
    struct shrink *shrink;
    struct buf *packed;
    bool done;    /* it is compressed */
    bool failed;  /* there was no room for compression */
    bool running; /* a helper is compressing it */
};

enum coding grpc_pack_coding(enum grpc_pack_level level, const char *accepted, size_t len)
{
    bool gzip = false, deflate = false;
    const char *end = accepted + len;
    while (accepted < end) {
        const char *comma = memchr(accepted, ',', (size_t)(end - accepted));
        const char *stop = comma ? comma : end;
        const char *last = stop;
        while (accepted < last && *accepted == ' ')
            accepted++;
        while (last > accepted && last[-1] == ' ')
            last--;
        enum coding coding = grpc_text_coding(accepted, (size_t)(last - accepted));
        gzip = gzip || coding == CODING_GZIP;
        deflate = deflate || coding == CODING_DEFLATE;
        accepted = stop + 1;
    }
    if (level == GRPC_PACK_NONE || !(gzip || deflate))
        return CODING_IDENTITY;
    return gzip && (level == GRPC_PACK_LOW || !deflate) ? CODING_GZIP : CODING_DEFLATE;
}

static void pack_free(struct pack *p)
{
    shrink_free(p->shrink);
    buf_unref(p->packed);
    p->plain->free_fn(p->plain);
    mem_free(p);
}

/* The reply was sent, or nobody waits for it any more. */
static void free_reply(struct h2_reply *r)
{
    struct pack *p = LIST_ITEM(r, struct pack, reply);
    p->stream = NULL;
    if (p->running)
        helpers_cancel(&p->job);
    else
        pack_free(p);
}

/* Chooses what is sent: the smaller of the two forms, as gRPC does. */
static void grpc_pack_settle(struct pack *p)
{
    size_t len = 0;
    if (p->done && !p->failed)
        shrink_take(p->shrink, &p->packed, &len);
    p->reply.waits = false;
    if (!p->packed || len + GRPC_PREFIX_BYTES >= p->plain->left) {
        p->reply.pieces = p->plain->pieces;
        p->reply.piece_count = p->plain->piece_count;
        p->reply.left = p->plain->left;
        return;
    }
    grpc_prefix_put(p->packed->data, true, (uint32_t)len);
    p->piece = (struct iovec){p->packed->data, GRPC_PREFIX_BYTES + len};
    p->reply.pieces = &p->piece;
    p->reply.piece_count = 1;
    p->reply.left = p->piece.iov_len;
}

static void step(struct pack *p, size_t most)
{
    struct err *e = shrink_step(p->shrink, most, &p->done);
    p->failed = e != NULL;
    err_free(e);
}

static bool grpc_pack_on_step(struct helpers_job *j)
{
    struct pack *p = (struct pack *)j;
    step(p, HELPERS_SLICE_BYTES);
    return p->done || p->failed;
}

static void grpc_pack_on_finish(struct helpers_job *j)
{
    struct pack *p = (struct pack *)j;
    p->running = false;
    if (!p->stream) {
        pack_free(p);
        return;
    }
    grpc_pack_settle(p);
    grpc_answer_packed(p->stream);
}

/* Begins to compress the message after its prefix. */
static struct err *grpc_pack_begin(struct pack *p, enum coding coding)
{
    const struct h2_reply *r = p->plain;
    struct iovec *pieces = mem_alloc(r->piece_count * sizeof(*pieces));
    size_t skip = GRPC_PREFIX_BYTES;
    for (uint32_t i = 0; i < r->piece_count; i++) {
        size_t here = skip < r->pieces[i].iov_len ? skip : r->pieces[i].iov_len;
        pieces[i] =
            (struct iovec){(uint8_t *)r->pieces[i].iov_base + here, r->pieces[i].iov_len - here};
        skip -= here;
    }
    struct err *e = shrink_new(pieces, r->piece_count, coding, GRPC_PREFIX_BYTES, &p->shrink);
    mem_free(pieces);
    return e;
}

struct h2_reply *grpc_pack(struct grpc_stream *s, struct h2_reply *r)
{
    struct pack *p = MEM_NEW(struct pack);
    p->stream = s;
    p->plain = r;
    p->reply.free_fn = free_reply;
    p->reply.left = r->left;
    p->reply.held = sizeof(*p) + r->held + r->left;
    struct err *e = grpc_pack_begin(p, s->packing);
    if (e) {
        err_free(e);
        mem_free(p);
        return r;
    }
    step(p, HELPERS_INLINE_BYTES / 4);
    if (p->done || p->failed) {
        grpc_pack_settle(p);
        return &p->reply;
    }
    p->reply.waits = true;
    p->running = true;
    p->job.loop = s->conn->home->worker->loop;
    p->job.step = grpc_pack_on_step;
    p->job.finish = grpc_pack_on_finish;
    helpers_submit(s->conn->home->helpers, &p->job);
    return &p->reply;
}
