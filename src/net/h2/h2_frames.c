#include "net/h2/h2_frames.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

void h2_frames_init(struct h2_frames *f)
{
    *f = (struct h2_frames){.left = NGHTTP2_CLIENT_MAGIC_LEN};
}

/* The longest padding, with its length. */
#define PADDING_BYTES 256u

static bool is_trifle(const struct h2_frames *f, uint8_t type, uint8_t flags)
{
    if (type != NGHTTP2_DATA)
        return type == NGHTTP2_PRIORITY || type > NGHTTP2_CONTINUATION;
    uint32_t least = flags & NGHTTP2_FLAG_PADDED ? PADDING_BYTES + 1 : 1;
    return f->left < least && !(flags & NGHTTP2_FLAG_END_STREAM);
}

static enum h2_frames_result h2_frames_begin(struct h2_frames *f)
{
    uint8_t type = f->head[3], flags = f->head[4];
    f->head_got = 0;
    f->left = (uint32_t)f->head[0] << 16 | (uint32_t)f->head[1] << 8 | f->head[2];
    if (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION) {
        f->block = !(flags & NGHTTP2_FLAG_END_HEADERS);
        f->block_bytes = (type == NGHTTP2_HEADERS ? 0 : f->block_bytes) + f->left;
        return f->block_bytes > H2_FRAMES_BLOCK_BYTES ? H2_FRAMES_BLOCK : H2_FRAMES_FINE;
    }
    if (is_trifle(f, type, flags) && ++f->trifles > H2_FRAMES_TRIFLES_MAX)
        return H2_FRAMES_TRIFLES;
    return H2_FRAMES_FINE;
}

enum h2_frames_result h2_frames_take(struct h2_frames *f, const uint8_t *data, size_t len)
{
    for (;;) {
        size_t n = f->left < len ? f->left : len;
        f->left -= (uint32_t)n;
        data += n;
        len -= n;
        if (!len)
            return H2_FRAMES_FINE;
        n = H2_FRAMES_HEAD_BYTES - f->head_got;
        if (n > len)
            n = len;
        memcpy(f->head + f->head_got, data, n);
        f->head_got = (uint8_t)(f->head_got + n);
        data += n;
        len -= n;
        enum h2_frames_result result =
            f->head_got == H2_FRAMES_HEAD_BYTES ? h2_frames_begin(f) : H2_FRAMES_FINE;
        if (result != H2_FRAMES_FINE)
            return result;
    }
}

bool h2_frames_partial(const struct h2_frames *f)
{
    return f->left || f->head_got || f->block;
}
