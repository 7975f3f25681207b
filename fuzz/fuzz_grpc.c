/* A whole gRPC connection, with models behind it.
 *
 * If the first byte is 0xFF, the rest is sent unchanged. Otherwise the input is a script of
 * fuzz_frames.h, so that the fuzzer tries calls and not only broken frames: each opens a stream as
 * stream, path, variant. */
#include "base/check.h"
#include "base/strbuf.h"
#include "grpc/grpc_conn.h"
#include "grpc/api/grpc_methods.h"
#include "metrics/front_metrics.h"
#include "net/helpers.h"
#include "server/server.h"
#include "server/worker.h"
#include "support/fuzz_frames.h"
#include "support/fuzz_server.h"

#include <string.h>

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

static void call(struct strbuf *block, struct fuzz_script *in)
{
    unsigned path = fuzz_frames_byte(in), variant = fuzz_frames_byte(in);
    fuzz_frames_field(block, ":method", path & 0x80 ? "GET" : "POST");
    fuzz_frames_field(block, ":scheme", "http");
    fuzz_frames_field(block, ":path", paths[(path & 0x7F) % (sizeof(paths) / sizeof(*paths))]);
    fuzz_frames_field(block, ":authority", "a");
    fuzz_frames_field(block, "content-type", path & 0x40 ? "text/plain" : "application/grpc");
    fuzz_frames_field(block, "te", "trailers");
    for (size_t i = 0; i < sizeof(extras) / sizeof(*extras); i++)
        if (variant & (1u << i))
            fuzz_frames_field(block, extras[i][0], extras[i][1]);
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
    struct fuzz_script in = {.at = bytes, .end = bytes + size, .open = call};
    grpc_conn_open(&home, fd);
    if (*bytes == 0xFF)
        fuzz_server_send(&c, bytes + 1, size - 1, 0);
    else
        fuzz_frames_play(&c, &in);
    fuzz_server_hang_up(&c);
    fuzz_server_settle(open_connections);
    CHECK(c.received < 9 || c.first[3] == NGHTTP2_SETTINGS);
    return 0;
}
