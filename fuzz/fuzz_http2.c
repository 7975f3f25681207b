/* A whole HTTP/2 connection on the HTTP port, with models behind it.
 *
 * If the first byte is 0xFF, the rest is sent unchanged. Otherwise the input is a script of
 * fuzz_frames.h: a request is opened as stream, path, variant. */
#include "base/check.h"
#include "base/strbuf.h"
#include "support/fuzz_frames.h"
#include "support/fuzz_http.h"
#include "support/fuzz_server.h"

#include <nghttp2/nghttp2.h>

static const char *const paths[] = {
    "/v2/models/m/infer",
    "/v2/models/b/infer",
    "/v2/models/d/generate_stream",
    "/v2/models/s/generate",
    "/v2/models/t/infer",
    "/v2",
    "/v2/health/ready",
    "/v2/models/m",
    "/v2/models/m/config",
    "/v2/models/stats",
    "/v2/openapi.json",
    "/v2/repository/index",
    "/v2/repository/models/m/load",
    "/v2/systemsharedmemory/status",
    "/v2/trace/setting",
    "/v2/logging",
    "*",
    "/nothing",
};

static const char *const methods[] = {"POST", "GET", "HEAD", "OPTIONS"};

/* Fields that a request adds; the bits of its variant choose them. */
static const char *const extras[][2] = {
    {"inference-header-content-length", "70"},
    {"content-encoding", "gzip"},
    {"accept-encoding", "gzip"},
    {"expect", "100-continue"},
    {"content-length", "40"},
    {"content-length", "4000000000"},
};

/* The highest bits: of the path, no body follows; of the variant, the method. */
static void ask(struct strbuf *block, struct fuzz_script *in)
{
    unsigned path = fuzz_frames_byte(in), variant = fuzz_frames_byte(in);
    in->ends = path & 0x80;
    fuzz_frames_field(block, ":method", methods[variant >> 6]);
    fuzz_frames_field(block, ":scheme", "http");
    fuzz_frames_field(block, ":path", paths[(path & 0x7F) % (sizeof(paths) / sizeof(*paths))]);
    fuzz_frames_field(block, ":authority", "a");
    for (size_t i = 0; i < sizeof(extras) / sizeof(*extras); i++)
        if (variant & (1u << i))
            fuzz_frames_field(block, extras[i][0], extras[i][1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 2)
        return 0;
    fuzz_http_front();
    fuzz_server_fresh();
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd)};
    struct fuzz_script in = {.at = bytes, .end = bytes + size, .open = ask};
    fuzz_http_serve(fd);
    if (*bytes == 0xFF)
        fuzz_server_send(&c, bytes + 1, size - 1, 0);
    else
        fuzz_frames_play(&c, &in);
    fuzz_server_hang_up(&c);
    fuzz_http_settle();
    CHECK(*bytes == 0xFF || c.received < 9 || c.first[3] == NGHTTP2_SETTINGS);
    return 0;
}
