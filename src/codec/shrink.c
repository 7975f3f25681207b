#include "codec/shrink.h"

#include "base/budget.h"
#include "base/mem.h"
#include "codec/zstd.h"
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

#define ZSTD_LEVEL 3 /* the library's own choice */

struct shrink {
    z_stream z;
    const struct zstd *lib; /* NULL = it is not zstd */
    void *zstd;             /* the library's, instead of z */
    size_t state_bytes;     /* charged for either */
    struct iovec *pieces;
    size_t count;
    size_t at; /* the current piece */
    size_t offset;
    size_t before;
    size_t used; /* bytes of output */
    struct buf *out;
};

static struct err *shrink_charge(struct shrink *x, size_t bytes)
{
    if (budget_charge_up(&x->state_bytes, bytes))
        return NULL;
    return err_busy("no room to compress: too many bytes are in flight");
}

static struct err *shrink_no_memory(void)
{
    return err_new(STATUS_UNAVAILABLE, "no memory to compress");
}

/* ret_most  the most bytes of output for so many */
static struct err *shrink_begin_zlib(struct shrink *x, size_t total, bool gzip, size_t *ret_most)
{
    struct err *e = shrink_charge(x, STATE_BYTES);
    if (e)
        return e;
    bool small = total <= SMALL_BYTES;
    int window = small ? SMALL_WINDOW : LARGE_WINDOW;
    if (deflateInit2(&x->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip ? window + 16 : window,
                     small ? SMALL_MEMORY : LARGE_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return shrink_no_memory();
    *ret_most = deflateBound(&x->z, total);
    return NULL;
}

/* Charges what the compressor takes by now: it makes its tables with the first bytes. */
static struct err *shrink_charge_zstd(struct shrink *x)
{
    return shrink_charge(x, x->lib->packer_bytes(x->zstd));
}

static struct err *shrink_begin_zstd(struct shrink *x, size_t total, size_t *ret_most)
{
    struct err *e = zstd_library(&x->lib);
    if (e)
        return e;
    x->zstd = x->lib->packer_new();
    if (!x->zstd)
        return shrink_no_memory();
    x->lib->packer_set(x->zstd, ZSTD_PARAMETER_LEVEL, ZSTD_LEVEL);
    x->lib->packer_set_size(x->zstd, total); /* tables no larger than needed */
    *ret_most = x->lib->bound(total);
    return shrink_charge_zstd(x);
}

struct err *shrink_new(const struct iovec *pieces, size_t count, enum coding coding, size_t before,
                       struct shrink **ret)
{
    struct shrink *x = MEM_NEW(struct shrink);
    size_t total = 0, most = 0;
    for (size_t i = 0; i < count; i++)
        total += pieces[i].iov_len;
    struct err *e = coding == CODING_ZSTD
                        ? shrink_begin_zstd(x, total, &most)
                        : shrink_begin_zlib(x, total, coding == CODING_GZIP, &most);
    if (!e)
        e = pool_buf_arriving(before + most, &x->out);
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

/* One call of zlib: reads at most `in` bytes, none = they are over; writes at most `room`.
 * ret_used, ret_made  how many it read and wrote */
static struct err *deflate_some(struct shrink *x, const void *from, size_t in, size_t room,
                                size_t *ret_used, size_t *ret_made, bool *ret_done)
{
    x->z.next_in = (z_const Bytef *)(uintptr_t)from;
    x->z.avail_in = (unsigned)in;
    x->z.next_out = x->out->data + x->before + x->used;
    x->z.avail_out = (unsigned)room;
    int rc = deflate(&x->z, in ? Z_NO_FLUSH : Z_FINISH);
    *ret_used = in - x->z.avail_in;
    *ret_made = room - x->z.avail_out;
    *ret_done = rc == Z_STREAM_END;
    return rc == Z_OK || *ret_done ? NULL : err_new(STATUS_INTERNAL, "compressing failed: %d", rc);
}

static struct err *pack_zstd(struct shrink *x, const void *from, size_t in, size_t room,
                             size_t *ret_used, size_t *ret_made, bool *ret_done)
{
    struct zstd_in source = {from, in, 0};
    struct zstd_out out = {x->out->data + x->before + x->used, room, 0};
    int end = in ? ZSTD_END_CONTINUE : ZSTD_END_FRAME;
    size_t rc = x->lib->pack(x->zstd, &out, &source, end);
    *ret_used = source.at;
    *ret_made = out.at;
    *ret_done = end == ZSTD_END_FRAME && !rc;
    if (x->lib->is_error(rc))
        return err_new(STATUS_INTERNAL, "compressing failed: %s", x->lib->error_name(rc));
    return shrink_charge_zstd(x);
}

struct err *shrink_step(struct shrink *x, size_t most, bool *ret_done)
{
    *ret_done = false;
    for (size_t spent = 0; spent < most && !*ret_done;) {
        while (x->at < x->count && x->offset == x->pieces[x->at].iov_len) {
            x->at++;
            x->offset = 0;
        }
        bool more = x->at < x->count;
        const char *from = more ? (const char *)x->pieces[x->at].iov_base + x->offset : NULL;
        size_t in = more ? x->pieces[x->at].iov_len - x->offset : 0;
        in = in < most - spent ? in : most - spent;
        in = in < STEP_BYTES ? in : STEP_BYTES;
        size_t room = x->out->size - x->before - x->used;
        room = room < STEP_BYTES ? room : STEP_BYTES;
        size_t used, made;
        struct err *e = x->lib ? pack_zstd(x, from, in, room, &used, &made, ret_done)
                               : deflate_some(x, from, in, room, &used, &made, ret_done);
        if (e)
            return e;
        x->offset += used;
        x->used += made;
        spent += used + 1;
        e = pool_arrived(x->out, x->before + x->used);
        if (e)
            return e;
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
    if (x->zstd)
        x->lib->packer_free(x->zstd);
    deflateEnd(&x->z);
    buf_unref(x->out);
    mem_free(x->pieces);
    budget_release(x->state_bytes);
    mem_free(x);
}
