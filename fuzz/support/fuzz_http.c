#include "support/fuzz_http.h"

#include "base/check.h"
#include "http/api/http_api.h"
#include "http/http_conn.h"
#include "http/http_front.h"
#include "http/http_shard.h"
#include "net/door.h"
#include "net/helpers.h"
#include "server/worker.h"
#include "support/fuzz_server.h"

static struct http_front *front;

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

struct http_front *fuzz_http_front(void)
{
    if (front)
        return front;
    struct worker *w = fuzz_server_worker();
    CHECK(!http_front_open(w->server, &http_api_service, "127.0.0.1", 0, false, &(struct door){0},
                           &front));
    helpers_free(front->helpers);
    front->helpers = helpers_new(0); /* no thread: jobs run at once */
    fuzz_server_forgive = forgive;
    return front;
}

void fuzz_http_serve(int fd)
{
    http_conn_open(&fuzz_http_front()->shards[0], fd);
}

void fuzz_http_settle(void)
{
    fuzz_server_settle(open_connections);
}
