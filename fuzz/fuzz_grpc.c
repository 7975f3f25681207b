/* A whole gRPC connection, with models behind it.
 *
 * If the first byte is 0xFF, the rest is sent unchanged. Otherwise the input is a script, so that
 * the fuzzer tries calls and not only broken frames: the first byte chooses the size of the pieces
 * in which the bytes are sent; then come steps of one byte each (below) with their operands, in
 * which lengths have two bytes. The preface and SETTINGS are sent first. */
#include "base/check.h"
#include "base/strbuf.h"
#include "grpc/grpc_conn.h"
#include "grpc/api/grpc_methods.h"
#include "metrics/front_metrics.h"
#include "net/helpers.h"
#include "server/server.h"
#include "server/worker.h"
#include "support/fuzz_server.h"

#include <string.h>

enum step {
    STEP_CALL,     /* stream, path, variant: HEADERS */
    STEP_MESSAGE,  /* stream, flags, length, bytes: DATA with a gRPC prefix */
    STEP_DATA,     /* stream, flags, length, bytes */
    STEP_TRAILERS, /* stream: empty DATA that ends the stream */
    STEP_RESET,    /* stream */
    STEP_FRAME,    /* type, flags, stream, length, bytes: any frame */
    STEP_WINDOW,   /* stream, increment */
    STEP_TURN,
    STEPS,
};

static const char *const paths[] = {
    "/inference.GRPCInferenceService/ModelInfer",
    "/inference.GRPCInferenceService/ModelStreamInfer",
    "/inference.GRPCInferenceService/ServerLive",
    "/inference.GRPCInferenceService/ServerReady",
    "/inference.GRPCInferenceService/ModelReady",
    "/inference.GRPCInferenceService/ServerMetadata",
    "/inference.GRPCInferenceService/ModelMetadata",
    "/inference.GRPCInferenceService/ModelConfig",
    "/inference.GRPCInferenceService/ModelStatistics",
    "/inference.GRPCInferenceService/RepositoryIndex",
    "/inference.GRPCInferenceService/RepositoryModelLoad",
    "/inference.GRPCInferenceService/RepositoryModelUnload",
    "/inference.GRPCInferenceService/SystemSharedMemoryStatus",
    "/inference.GRPCInferenceService/CudaSharedMemoryRegister",
    "/inference.GRPCInferenceService/TraceSetting",
    "/inference.GRPCInferenceService/LogSettings",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/nobody/Nothing",
};

/* Headers that a call adds; the bits of its variant choose them. */
static const char *const extras[][2] = {
    {"grpc-encoding", "gzip"},      {"grpc-encoding", "deflate"},
    {"grpc-timeout", "1S"},         {"grpc-timeout", "1n"},
    {"triton_grpc_error", "true"},  {"grpc-accept-encoding", "identity,gzip"},
    {"grpc-encoding", "something"}, {"grpc-timeout", "soon"},
};

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

static struct grpc_home home;

static int open_connections(void)
{
    return !list_empty(&home.conns);
}

static void on_gone(struct grpc_home *h)
{
    (void)h;
}

static void forgive(void)
{
    home.strangers = 0;
    LIST_EACH (node, &home.conns) {
        struct grpc_conn *c = LIST_ITEM(node, struct grpc_conn, node);
        c->turns = 0;
        loop_move(home.worker->loop, &c->watch, LOOP_LANE_FRONT);
    }
}

static void prepare(void)
{
    if (home.worker)
        return;
    fuzz_server_forgive = forgive;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&options) == 0);
    grpc_conn_callbacks(callbacks);
    grpc_conn_options(options);
    const struct options *settings = fuzz_server_worker()->server->options;
    home = (struct grpc_home){.worker = fuzz_server_worker(),
                              .guard = {.restrictions = &settings->grpc_restrictions},
                              .helpers = helpers_new(0), /* no thread: jobs run at once */
                              .service = &grpc_methods_service,
                              .metrics = front_metrics_new(grpc_methods_service.metrics()),
                              .callbacks = callbacks,
                              .options = options,
                              .conn_gone = on_gone};
    grpc_keepalive_rules(settings, &home.rules);
    list_init(&home.conns);
}

static unsigned byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static size_t length(struct input *in)
{
    size_t n = byte(in) << 8;
    n += byte(in);
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

static void literal(struct strbuf *out, const char *name, const char *value)
{
    size_t lengths[2] = {strlen(name), strlen(value)};
    const char *texts[2] = {name, value};
    strbuf_putc(out, 0);
    for (int i = 0; i < 2; i++) {
        CHECK(lengths[i] < 127);
        strbuf_putc(out, (char)lengths[i]);
        strbuf_append(out, texts[i], lengths[i]);
    }
}

static void call(struct strbuf *out, struct input *in)
{
    unsigned id = byte(in), path = byte(in), variant = byte(in);
    struct strbuf block = STRBUF_INIT;
    literal(&block, ":method", path & 0x80 ? "GET" : "POST");
    literal(&block, ":scheme", "http");
    literal(&block, ":path", paths[(path & 0x7F) % (sizeof(paths) / sizeof(*paths))]);
    literal(&block, ":authority", "a");
    literal(&block, "content-type", path & 0x40 ? "text/plain" : "application/grpc");
    literal(&block, "te", "trailers");
    for (size_t i = 0; i < sizeof(extras) / sizeof(*extras); i++)
        if (variant & (1u << i))
            literal(&block, extras[i][0], extras[i][1]);
    frame_head(out, block.len, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id);
    strbuf_append(out, block.data, block.len);
    strbuf_fini(&block);
}

static void payload(struct strbuf *out, struct input *in, size_t len)
{
    if (len)
        strbuf_append(out, (const char *)in->at, len);
    in->at += len;
}

static void data(struct strbuf *out, struct input *in, bool message)
{
    unsigned id = byte(in), flags = byte(in);
    size_t len = length(in);
    frame_head(out, len + (message ? 5 : 0), NGHTTP2_DATA, flags & NGHTTP2_FLAG_END_STREAM, id);
    if (message) {
        const uint8_t prefix[5] = {(uint8_t)(flags >> 7 & 1), 0, 0, (uint8_t)(len >> 8),
                                   (uint8_t)len};
        strbuf_append(out, (const char *)prefix, sizeof(prefix));
    }
    payload(out, in, len);
}

static void frame(struct strbuf *out, struct input *in)
{
    unsigned type = byte(in), flags = byte(in), id = byte(in);
    size_t len = length(in);
    frame_head(out, len, type, flags, id);
    payload(out, in, len);
}

static void window(struct strbuf *out, struct input *in)
{
    unsigned id = byte(in);
    const uint8_t by[4] = {0, (uint8_t)byte(in), (uint8_t)byte(in), 1};
    frame_head(out, sizeof(by), NGHTTP2_WINDOW_UPDATE, 0, id);
    strbuf_append(out, (const char *)by, sizeof(by));
}

static void step(struct strbuf *out, struct input *in)
{
    static const uint8_t cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
    unsigned what = byte(in);
    switch ((enum step)(what % STEPS)) {
    case STEP_CALL:
        call(out, in);
        break;
    case STEP_MESSAGE:
        data(out, in, true);
        break;
    case STEP_DATA:
        data(out, in, false);
        break;
    case STEP_TRAILERS:
        frame_head(out, 0, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, byte(in));
        break;
    case STEP_RESET:
        frame_head(out, sizeof(cancel), NGHTTP2_RST_STREAM, 0, byte(in));
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

static void play(struct fuzz_client *c, struct input *in)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    unsigned piece = byte(in);
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2)
        return 0;
    prepare();
    fuzz_server_fresh();
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd)};
    struct input in = {bytes, bytes + size};
    grpc_conn_open(&home, fd);
    if (*bytes == 0xFF)
        fuzz_server_send(&c, bytes + 1, size - 1, 0);
    else
        play(&c, &in);
    fuzz_server_hang_up(&c);
    fuzz_server_settle(open_connections);
    CHECK(c.received < 9 || c.first[3] == NGHTTP2_SETTINGS);
    return 0;
}
