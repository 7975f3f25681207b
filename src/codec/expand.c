#include "codec/expand.h"

#include "base/budget.h"
#include "base/mem.h"
#include "codec/zstd.h"
#include "os/pool.h"

#include <string.h>
#include <zlib.h>

#define STATE_BYTES  ((size_t)49152)         /* the memory of a zlib stream */
#define CHUNK_BYTES  (((size_t)2 << 20) - 1) /* plus one byte: a huge page */
#define FIRST_BYTES  ((size_t)65536)
#define SECOND_BYTES (CHUNK_BYTES - 4096)
#define MOST_RATIO   ((size_t)1032)  /* the highest compression ratio of deflate */
#define ZSTD_RATIO   ((size_t)43690) /* of zstd: 128 KiB of one byte take three and that byte */
#define STEP_BYTES   ((size_t)1 << 30)
#define WINDOW_BITS  15
#define GZIP_BITS    (WINDOW_BITS + 16)
#define EITHER_BITS  (WINDOW_BITS + 32)

struct chunk {
    struct buf *buf;
    size_t begin; /* where output begins in the buffer */
    size_t used;  /* bytes of output */
    size_t room;  /* bytes for output */
};

struct expand {
    struct expand_spec spec;
    z_stream z;
    const struct zstd *lib; /* NULL = it is not zstd */
    void *zstd;             /* the library's, instead of z */
    size_t state_bytes;     /* charged for either */
    const uint8_t *next;    /* of the input */
    const uint8_t *end;
    struct chunk *chunks;
    size_t chunk_count;
    size_t total;                  /* bytes of output */
    bool in_frame;                 /* of zstd: it goes on */
    unsigned long long frame_size; /* of zstd, as the frame says it */
    unsigned long long frame_made;
    bool ended;         /* the stream is complete or damaged */
    const char *damage; /* NULL = none */
    struct buf *joined; /* the buffer that the chunks are moved to; chunks[0..moved) were moved */
    size_t joined_len;
    size_t moved;
    size_t moved_bytes; /* of the current chunk */
    struct err *error;
};

static struct err *expand_charge(struct expand *x, size_t bytes)
{
    if (budget_charge_up(&x->state_bytes, bytes))
        return NULL;
    return err_busy("no room to decompress: too many bytes are in flight");
}

/* Charges what the decompressor takes by now; its window is made when a frame says how large it
 * is. */
static struct err *charge_zstd(struct expand *x)
{
    return expand_charge(x, x->lib->unpacker_bytes(x->zstd));
}

static struct err *begin_zstd(struct expand *x)
{
    struct err *e = zstd_library(&x->lib);
    if (e)
        return e;
    x->zstd = x->lib->unpacker_new();
    if (!x->zstd)
        return err_new(STATUS_UNAVAILABLE, "no memory to decompress");
    x->lib->unpacker_set(x->zstd, ZSTD_PARAMETER_WINDOW_LOG_MAX, ZSTD_WINDOW_LOG);
    return charge_zstd(x);
}

static struct err *begin_zlib(struct expand *x)
{
    const struct expand_spec *spec = &x->spec;
    struct err *e = expand_charge(x, STATE_BYTES);
    if (e)
        return e;
    int bits = spec->either ? EITHER_BITS : spec->coding == CODING_GZIP ? GZIP_BITS : WINDOW_BITS;
    if (inflateInit2(&x->z, bits) != Z_OK)
        return err_new(STATUS_UNAVAILABLE, "no memory to decompress");
    return NULL;
}

struct err *expand_new(const struct expand_spec *spec, struct expand **ret)
{
    struct expand *x = MEM_NEW(struct expand);
    x->spec = *spec;
    x->next = spec->data;
    x->end = x->next + spec->len;
    struct err *e = spec->coding == CODING_ZSTD ? begin_zstd(x) : begin_zlib(x);
    if (e) {
        expand_free(x);
        return e;
    }
    *ret = x;
    return NULL;
}

/* The size that the data say their output has; 0 = they do not. */
static size_t said_size(const struct expand *x)
{
    const uint8_t *data = x->spec.data;
    size_t len = x->spec.len;
    if (x->lib) {
        unsigned long long said = x->lib->frame_size(data, len);
        return said < ZSTD_SIZE_UNKNOWN && said <= SIZE_MAX ? (size_t)said : 0;
    }
    if (len < 18 || data[0] != 0x1f || data[1] != 0x8b)
        return 0;
    return (size_t)x->end[-4] | (size_t)x->end[-3] << 8 | (size_t)x->end[-2] << 16 |
           (size_t)x->end[-1] << 24;
}

/* The probable size of the output: gzip data end with it, zstd data may begin with it. If it is
 * wrong, the output is moved once more. */
static size_t guess(const struct expand *x)
{
    size_t len = x->spec.len;
    size_t ratio = x->lib ? ZSTD_RATIO : MOST_RATIO;
    size_t most = len < SIZE_MAX / ratio ? len * ratio : SIZE_MAX;
    size_t said = said_size(x);
    if (said > 0 && said <= most && said <= x->spec.limit)
        return said;
    size_t some = len < CHUNK_BYTES / 4 ? len * 4 : CHUNK_BYTES;
    some = some > FIRST_BYTES ? some : FIRST_BYTES;
    some = some < most ? some : most;
    return some < x->spec.limit ? some : x->spec.limit;
}

/* Makes the buffer for the beginning of the output, with the requested free bytes around it. */
static bool first_chunk(struct expand *x, size_t room, struct chunk *ret)
{
    struct buf *buf;
    x->error = pool_buf_arriving(x->spec.before + room + x->spec.after + 1, &buf);
    if (x->error)
        return false;
    *ret = (struct chunk){.buf = buf, .begin = x->spec.before, .room = room};
    return true;
}

static bool next_chunk(struct expand *x, struct chunk *ret)
{
    size_t left = x->spec.limit - x->total;
    size_t room = CHUNK_BYTES < left ? CHUNK_BYTES : left;
    *ret = (struct chunk){.room = room};
    x->error = pool_buf_arriving(room + 1, &ret->buf);
    return !x->error;
}

/* The first chunk grows to the guessed size in three steps, and is moved at each. So a caller
 * that only needs the beginning, such as a loop, does not wait until the system has cleared a
 * huge page, and messages that have just begun use little memory. */
static bool add_chunk(struct expand *x)
{
    size_t all = guess(x);
    struct chunk *first = x->chunks;
    struct chunk c;
    if (x->chunk_count == 0) {
        if (!first_chunk(x, all < FIRST_BYTES ? all : FIRST_BYTES, &c))
            return false;
    } else if (x->chunk_count == 1 && first->room < all) {
        if (!first_chunk(x, first->room < SECOND_BYTES && all > SECOND_BYTES ? SECOND_BYTES : all,
                         &c))
            return false;
        memcpy(c.buf->data + c.begin, first->buf->data + first->begin, first->used);
        c.used = first->used;
        buf_unref(first->buf);
        *first = c;
        return true;
    } else if (!next_chunk(x, &c)) {
        return false;
    }
    x->chunks = mem_realloc(x->chunks, (x->chunk_count + 1) * sizeof(*x->chunks));
    x->chunks[x->chunk_count++] = c;
    return true;
}

static enum expand_state damaged(struct expand *x, const char *why)
{
    x->damage = why;
    x->ended = true;
    return EXPAND_MORE;
}

/* One call of zlib: reads at most `in` bytes, writes at most `room` to `to`.
 * ret_made  how many it wrote */
static enum expand_state inflate_some(struct expand *x, size_t in, uint8_t *to, size_t room,
                                      size_t *ret_made)
{
    x->z.next_in = (z_const Bytef *)(uintptr_t)x->next;
    x->z.avail_in = (unsigned)in;
    x->z.next_out = to;
    x->z.avail_out = (unsigned)room;
    int rc = inflate(&x->z, Z_NO_FLUSH);
    x->next = x->z.next_in;
    *ret_made = room - x->z.avail_out;
    if (rc == Z_STREAM_END)
        x->ended = true;
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
        return damaged(x, x->z.msg ? x->z.msg : "bad data");
    else if (rc == Z_BUF_ERROR || (x->next == x->end && *ret_made < room))
        return damaged(x, "it is cut off");
    return EXPAND_MORE;
}

/* True if the rest of the input is a frame of zstd, or one to be skipped. The library might know
 * older formats, too, whose windows it does not limit. */
static bool is_frame(const struct expand *x)
{
    uint32_t magic;
    if ((size_t)(x->end - x->next) < sizeof(magic))
        return false;
    memcpy(&magic, x->next, sizeof(magic));
    return magic == 0xFD2FB528u || (magic & 0xFFFFFFF0u) == 0x184D2A50u;
}

/* The same with zstd. RFC 8878 allows several frames, one after the other. */
static enum expand_state unpack_zstd(struct expand *x, size_t in, uint8_t *to, size_t room,
                                     size_t *ret_made)
{
    *ret_made = 0;
    if (!x->in_frame) {
        if (!is_frame(x))
            return damaged(x, "a frame of zstd was expected");
        x->frame_size = x->lib->frame_size(x->next, (size_t)(x->end - x->next));
        x->frame_made = 0;
    }
    struct zstd_in from = {x->next, in, 0};
    struct zstd_out out = {to, room, 0};
    size_t rc = x->lib->unpack(x->zstd, &out, &from);
    x->next += from.at;
    *ret_made = out.at;
    if (x->lib->is_error(rc))
        return damaged(x, x->lib->error_name(rc));
    x->in_frame = rc > 0;
    x->frame_made += out.at;
    /* The library looks at that only where it unpacks a frame at once. */
    if (!rc && x->frame_size < ZSTD_SIZE_UNKNOWN && x->frame_made != x->frame_size)
        return damaged(x, "a frame of zstd is not as long as it says");
    if (!rc && x->next == x->end)
        x->ended = true;
    else if (x->next == x->end && out.at < room)
        return damaged(x, "it is cut off");
    x->error = charge_zstd(x);
    return x->error ? EXPAND_NO_ROOM : EXPAND_MORE;
}

static enum expand_state unpack_some(struct expand *x, size_t most, uint8_t *to, size_t room,
                                     size_t *ret_made, size_t *spent)
{
    const uint8_t *before = x->next;
    size_t left = (size_t)(x->end - x->next);
    size_t in = left < most ? left : most;
    enum expand_state s =
        x->lib ? unpack_zstd(x, in, to, room, ret_made) : inflate_some(x, in, to, room, ret_made);
    *spent += *ret_made + (size_t)(x->next - before);
    return s;
}

/* The limit is exceeded only if there is one more byte. */
static enum expand_state unpack_past_limit(struct expand *x, size_t most, size_t *spent)
{
    uint8_t spare;
    size_t made;
    enum expand_state s = unpack_some(x, most, &spare, 1, &made, spent);
    return made ? EXPAND_TOO_LARGE : s;
}

/* One call of the library, which reads and writes at most `most` bytes; they are added to
 * *spent. */
static enum expand_state unpack(struct expand *x, size_t most, size_t *spent)
{
    if (x->total == x->spec.limit)
        return unpack_past_limit(x, most, spent);
    struct chunk *c = x->chunk_count ? &x->chunks[x->chunk_count - 1] : NULL;
    if (!c || c->used == c->room) {
        if (!add_chunk(x))
            return EXPAND_NO_ROOM;
        c = &x->chunks[x->chunk_count - 1];
    }
    size_t out = c->room - c->used < most ? c->room - c->used : most;
    size_t made;
    enum expand_state s =
        unpack_some(x, most, c->buf->data + c->begin + c->used, out, &made, spent);
    c->used += made;
    x->total += made;
    if (s != EXPAND_MORE)
        return s;
    x->error = pool_arrived(c->buf, c->begin + c->used);
    return x->error ? EXPAND_NO_ROOM : EXPAND_MORE;
}

/* Moves some of the chunks into one buffer. Returns DONE when all are moved. */
static enum expand_state expand_join(struct expand *x, size_t most)
{
    if (x->chunk_count <= 1)
        return x->damage ? EXPAND_DAMAGED : EXPAND_DONE;
    if (!x->joined) {
        x->error = pool_buf_arriving(x->spec.before + x->total + x->spec.after, &x->joined);
        if (x->error)
            return EXPAND_NO_ROOM;
    }
    while (most > 0 && x->moved < x->chunk_count) {
        struct chunk *c = &x->chunks[x->moved];
        size_t n = c->used - x->moved_bytes < most ? c->used - x->moved_bytes : most;
        uint8_t *to = x->joined->data + x->spec.before + x->joined_len;
        memcpy(to, c->buf->data + c->begin + x->moved_bytes, n);
        x->joined_len += n;
        x->moved_bytes += n;
        most -= n;
        x->error = pool_arrived(x->joined, x->spec.before + x->joined_len);
        if (x->error)
            return EXPAND_NO_ROOM;
        if (x->moved_bytes < c->used)
            continue;
        buf_unref(c->buf);
        c->buf = NULL;
        x->moved++;
        x->moved_bytes = 0;
    }
    if (x->moved < x->chunk_count)
        return EXPAND_MORE;
    return x->damage ? EXPAND_DAMAGED : EXPAND_DONE;
}

enum expand_state expand_step(struct expand *x, size_t most)
{
    most = most < STEP_BYTES ? most : STEP_BYTES;
    size_t spent = 0;
    while (!x->ended && spent < most) {
        enum expand_state s = unpack(x, most - spent, &spent);
        if (s != EXPAND_MORE)
            return s;
    }
    return x->ended ? expand_join(x, most - (spent < most ? spent : most) + 1) : EXPAND_MORE;
}

void expand_take(struct expand *x, struct buf **ret_buf, size_t *ret_len)
{
    *ret_len = x->total;
    if (x->joined) {
        *ret_buf = x->joined;
        x->joined = NULL;
    } else {
        *ret_buf = x->chunks[0].buf;
        x->chunks[0].buf = NULL;
    }
}

const char *expand_why(const struct expand *x)
{
    return x->damage;
}

struct err *expand_error(struct expand *x)
{
    struct err *e = x->error;
    x->error = NULL;
    return e;
}

void expand_free(struct expand *x)
{
    if (!x)
        return;
    if (x->zstd)
        x->lib->unpacker_free(x->zstd);
    inflateEnd(&x->z);
    for (size_t i = 0; i < x->chunk_count; i++)
        buf_unref(x->chunks[i].buf);
    mem_free(x->chunks);
    buf_unref(x->joined);
    err_free(x->error);
    budget_release(x->state_bytes);
    mem_free(x);
}
