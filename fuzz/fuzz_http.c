/* A whole HTTP connection to a server with models. The first byte chooses how the rest is cut
 * into pieces, and whether pages of other origins are allowed. */
#include "base/check.h"
#include "http/http_cors.h"
#include "http/http_shard.h"
#include "support/fuzz_http.h"
#include "support/fuzz_server.h"

#include <string.h>

static struct http_cors *cors;

/* For the next connection. */
static void allow_pages(bool allow)
{
    static const char *const origins[] = {"https://a.example", "http://localhost:3000"};
    if (!cors)
        cors = http_cors_new(origins, 2);
    struct http_front *front = fuzz_http_front();
    front->cors = allow ? cors : NULL;
    front->collect = allow;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    allow_pages(data[0] & 0x80);
    fuzz_server_fresh();
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd)};
    fuzz_http_serve(fd);
    fuzz_server_send(&c, data + 1, size - 1, data[0]);
    fuzz_server_hang_up(&c);
    fuzz_http_settle();
    fuzz_http_check(&c);
    return 0;
}
