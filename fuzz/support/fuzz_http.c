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

#include <string.h>

#define FRONTS 4

static struct http_front *fronts[FRONTS]; /* fronts[0] is the inference port, once it is made */
static int others;                        /* after fronts[0] */

static int open_connections(void)
{
    int open = 0;
    for (int i = 0; i < FRONTS; i++)
        open += fronts[i] && !list_empty(&fronts[i]->shards[0].conns);
    return open;
}

static void forgive_front(struct http_front *front)
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

static void forgive(void)
{
    for (int i = 0; i < FRONTS; i++)
        if (fronts[i])
            forgive_front(fronts[i]);
}

static struct http_front *open_front(const struct http_service *service, struct http_front **ret)
{
    struct worker *w = fuzz_server_worker();
    CHECK(!http_front_open(w->server, service, "127.0.0.1", 0, false, &(struct door){0}, ret));
    helpers_free((*ret)->helpers);
    (*ret)->helpers = helpers_new(0); /* no thread: jobs run at once */
    fuzz_server_forgive = forgive;
    return *ret;
}

struct http_front *fuzz_http_front(void)
{
    return fronts[0] ? fronts[0] : open_front(&http_api_service, &fronts[0]);
}

struct http_front *fuzz_http_open(const struct http_service *service)
{
    CHECK(others < FRONTS - 1);
    return open_front(service, &fronts[++others]);
}

void fuzz_http_serve(int fd)
{
    fuzz_http_serve_at(fuzz_http_front(), fd);
}

void fuzz_http_serve_at(struct http_front *front, int fd)
{
    http_conn_open(&front->shards[0], fd);
}

void fuzz_http_settle(void)
{
    fuzz_server_settle(open_connections);
}

void fuzz_http_check(const struct fuzz_client *c)
{
    static const uint8_t settings[] = {4, 0, 0, 0, 0, 0}; /* type, flags, stream */
    CHECK(c->received < sizeof(c->first) || memcmp(c->first, "HTTP/1.1 ", 9) == 0 ||
          memcmp(c->first + 3, settings, sizeof(settings)) == 0);
}
