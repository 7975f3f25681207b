#include "support/fuzz_frames.h"

#include "base/check.h"
#include "base/strbuf.h"
#include "support/fuzz_server.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

enum step {
    STEP_OPEN,     /* stream, operands of `open`: HEADERS */
    STEP_MESSAGE,  /* stream, flags, length, bytes: DATA with a gRPC prefix */
    STEP_DATA,     /* stream, flags, length, bytes */
    STEP_TRAILERS, /* stream: empty DATA that ends the stream */
    STEP_RESET,    /* stream */
    STEP_FRAME,    /* type, flags, stream, length, bytes: any frame */
    STEP_WINDOW,   /* stream, increment */
    STEP_TURN,
    STEPS,
};

unsigned fuzz_frames_byte(struct fuzz_script *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static size_t length(struct fuzz_script *in)
{
    size_t n = fuzz_frames_byte(in) << 8;
    n += fuzz_frames_byte(in);
    size_t left = (size_t)(in->end - in->at);
    return n < left ? n : left;
}

static void frame_head(struct strbuf *out, size_t len, unsigned type, unsigned flags, unsigned id)
{
    const uint8_t head[9] = {(uint8_t)(len >> 16),
                             (uint8_t)(len >> 8),
                             (uint8_t)len,
                             (uint8_t)type,
                             (uint8_t)flags,
                             0,
                             0,
                             0,
                             (uint8_t)id};
    strbuf_append(out, (const char *)head, sizeof(head));
}

void fuzz_frames_field(struct strbuf *block, const char *name, const char *value)
{
    size_t lengths[2] = {strlen(name), strlen(value)};
    const char *texts[2] = {name, value};
    strbuf_putc(block, 0);
    for (int i = 0; i < 2; i++) {
        CHECK(lengths[i] < 127);
        strbuf_putc(block, (char)lengths[i]);
        strbuf_append(block, texts[i], lengths[i]);
    }
}

static void open_stream(struct strbuf *out, struct fuzz_script *in)
{
    unsigned id = fuzz_frames_byte(in);
    struct strbuf block = STRBUF_INIT;
    in->ends = false;
    in->open(&block, in);
    unsigned end = in->ends ? NGHTTP2_FLAG_END_STREAM : 0;
    frame_head(out, block.len, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | end, id);
    strbuf_append(out, block.data, block.len);
    strbuf_fini(&block);
}

static void payload(struct strbuf *out, struct fuzz_script *in, size_t len)
{
    if (len)
        strbuf_append(out, (const char *)in->at, len);
    in->at += len;
}

static void data(struct strbuf *out, struct fuzz_script *in, bool message)
{
    unsigned id = fuzz_frames_byte(in), flags = fuzz_frames_byte(in);
    size_t len = length(in);
    frame_head(out, len + (message ? 5 : 0), NGHTTP2_DATA, flags & NGHTTP2_FLAG_END_STREAM, id);
    if (message) {
        const uint8_t prefix[5] = {(uint8_t)(flags >> 7 & 1), 0, 0, (uint8_t)(len >> 8),
                                   (uint8_t)len};
        strbuf_append(out, (const char *)prefix, sizeof(prefix));
    }
    payload(out, in, len);
}

static void frame(struct strbuf *out, struct fuzz_script *in)
{
    unsigned type = fuzz_frames_byte(in), flags = fuzz_frames_byte(in), id = fuzz_frames_byte(in);
    size_t len = length(in);
    frame_head(out, len, type, flags, id);
    payload(out, in, len);
}

static void window(struct strbuf *out, struct fuzz_script *in)
{
    unsigned id = fuzz_frames_byte(in);
    const uint8_t by[4] = {0, (uint8_t)fuzz_frames_byte(in), (uint8_t)fuzz_frames_byte(in), 1};
    frame_head(out, sizeof(by), NGHTTP2_WINDOW_UPDATE, 0, id);
    strbuf_append(out, (const char *)by, sizeof(by));
}

static void step(struct strbuf *out, struct fuzz_script *in)
{
    static const uint8_t cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
    unsigned what = fuzz_frames_byte(in);
    switch ((enum step)(what % STEPS)) {
    case STEP_OPEN:
        open_stream(out, in);
        break;
    case STEP_MESSAGE:
        data(out, in, true);
        break;
    case STEP_DATA:
        data(out, in, false);
        break;
    case STEP_TRAILERS:
        frame_head(out, 0, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, fuzz_frames_byte(in));
        break;
    case STEP_RESET:
        frame_head(out, sizeof(cancel), NGHTTP2_RST_STREAM, 0, fuzz_frames_byte(in));
        strbuf_append(out, (const char *)cancel, sizeof(cancel));
        break;
    case STEP_FRAME:
        frame(out, in);
        break;
    case STEP_WINDOW:
        window(out, in);
        break;
    case STEP_TURN:
    case STEPS:
        break;
    }
}

void fuzz_frames_play(struct fuzz_client *c, struct fuzz_script *in)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    unsigned piece = fuzz_frames_byte(in);
    struct strbuf out = STRBUF_INIT;
    strbuf_append(&out, preface, sizeof(preface) - 1);
    while (in->at < in->end) {
        bool turn = *in->at % STEPS == STEP_TURN;
        step(&out, in);
        if (!turn)
            continue;
        fuzz_server_send(c, out.data, out.len, piece);
        strbuf_fini(&out);
        out = (struct strbuf)STRBUF_INIT;
    }
    fuzz_server_send(c, out.data, out.len, piece);
    strbuf_fini(&out);
}
