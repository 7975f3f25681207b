#include "codec/shrink.h"

#include "base/budget.h"
#include "base/mem.h"
#include "os/pool.h"

#include <string.h>
#include <zlib.h>

#define STATE_BYTES ((size_t)294912) /* the most memory of a zlib stream */
#define STEP_BYTES  ((size_t)1 << 30)

/* For small inputs: a larger window or hash table would only take time to clear. */
#define SMALL_BYTES  ((size_t)4096)
#define SMALL_WINDOW 12
#define SMALL_MEMORY 5
#define LARGE_WINDOW 15
#define LARGE_MEMORY 8

struct shrink {
    z_stream z;
    struct iovec *pieces;
    size_t count;
    size_t at; /* the current piece */
    size_t offset;
    size_t before;
    size_t used; /* bytes of output */
    struct buf *out;
};

struct err *shrink_new(const struct iovec *pieces, size_t count, enum expand_coding coding,
                       size_t before, struct shrink **ret)
{
    if (!budget_charge(STATE_BYTES))
        return err_busy("no room to compress: too many bytes are in flight");
    struct shrink *x = MEM_NEW(struct shrink);
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += pieces[i].iov_len;
    bool small = total <= SMALL_BYTES;
    int window = small ? SMALL_WINDOW : LARGE_WINDOW;
    struct err *e = NULL;
    if (deflateInit2(&x->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                     coding == EXPAND_GZIP ? window + 16 : window,
                     small ? SMALL_MEMORY : LARGE_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        e = err_new(STATUS_UNAVAILABLE, "no memory to compress");
    if (!e)
        e = pool_buf_arriving(before + deflateBound(&x->z, total), &x->out);
    if (e) {
        shrink_free(x);
        return e;
    }
    x->before = before;
    x->count = count;
    x->pieces = mem_alloc(count * sizeof(*pieces));
    memcpy(x->pieces, pieces, count * sizeof(*pieces));
    *ret = x;
    return NULL;
}

struct err *shrink_step(struct shrink *x, size_t most, bool *ret_done)
{
    *ret_done = false;
    for (size_t spent = 0; spent < most && !*ret_done;) {
        while (x->at < x->count && x->offset == x->pieces[x->at].iov_len) {
            x->at++;
            x->offset = 0;
        }
        size_t in = x->at < x->count ? x->pieces[x->at].iov_len - x->offset : 0;
        in = in < most - spent ? in : most - spent;
        in = in < STEP_BYTES ? in : STEP_BYTES;
        size_t room = x->out->size - x->before - x->used;
        room = room < STEP_BYTES ? room : STEP_BYTES;
        x->z.next_in = in ? (z_const Bytef *)x->pieces[x->at].iov_base + x->offset : NULL;
        x->z.avail_in = (unsigned)in;
        x->z.next_out = x->out->data + x->before + x->used;
        x->z.avail_out = (unsigned)room;
        int rc = deflate(&x->z, in ? Z_NO_FLUSH : Z_FINISH);
        x->offset += in - x->z.avail_in;
        x->used += room - x->z.avail_out;
        spent += in - x->z.avail_in + 1;
        struct err *e = pool_arrived(x->out, x->before + x->used);
        if (e)
            return e;
        if (rc != Z_OK && rc != Z_STREAM_END)
            return err_new(STATUS_INTERNAL, "compressing failed: %d", rc);
        *ret_done = rc == Z_STREAM_END;
    }
    return NULL;
}

void shrink_take(struct shrink *x, struct buf **ret_buf, size_t *ret_len)
{
    *ret_buf = x->out;
    *ret_len = x->used;
    x->out = NULL;
}

void shrink_free(struct shrink *x)
{
    if (!x)
        return;
    deflateEnd(&x->z);
    buf_unref(x->out);
    mem_free(x->pieces);
    budget_release(STATE_BYTES);
    mem_free(x);
}
