/* A whole HTTP connection to a server with models. The first byte chooses how the rest is cut
 * into pieces, and whether pages of other origins are allowed. */
#include "base/check.h"
#include "net/door.h"
#include "net/helpers.h"
#include "http/api/http_api.h"
#include "http/http_conn.h"
#include "http/http_cors.h"
#include "http/http_front.h"
#include "http/http_shard.h"
#include "server/worker.h"
#include "support/fuzz_server.h"

#include <string.h>

static struct http_front *front;

static struct http_cors *cors;

/* For the next connection. */
static void allow_pages(bool allow)
{
    static const char *const origins[] = {"https://a.example", "http://localhost:3000"};
    if (!cors)
        cors = http_cors_new(origins, 2);
    front->cors = allow ? cors : NULL;
    front->collect = allow;
}

static int open_connections(void)
{
    return !list_empty(&front->shards[0].conns);
}

static void forgive(void)
{
    struct http_shard *s = &front->shards[0];
    s->strangers = 0;
    LIST_EACH (node, &s->conns) {
        struct http_conn *c = LIST_ITEM(node, struct http_conn, node);
        c->turns = 0;
        if (!c->dead)
            loop_move(s->worker->loop, &c->fd, LOOP_LANE_FRONT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct worker *w = fuzz_server_worker();
    if (!front) {
        CHECK(!http_front_open(w->server, &http_api_service, "127.0.0.1", 0, false,
                               &(struct door){0}, &front));
        helpers_free(front->helpers);
        front->helpers = helpers_new(0); /* no thread: jobs run in the caller */
        fuzz_server_forgive = forgive;
    }
    fuzz_server_fresh();
    allow_pages(data[0] & 0x80);
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd)};
    http_conn_open(&front->shards[0], fd);
    fuzz_server_send(&c, data + 1, size - 1, data[0]);
    fuzz_server_hang_up(&c);
    fuzz_server_settle(open_connections);
    CHECK(c.received < 9 || memcmp(c.first, "HTTP/1.1 ", 9) == 0);
    return 0;
}
