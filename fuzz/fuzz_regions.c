/* Shared memory of clients over a whole HTTP connection, with models behind it. Of the first byte
 * bit 0 says whether clients may register any, bit 1 that the memory is cut short halfway; what is
 * left of it chooses how the rest is cut into pieces. The memory is "/nereid-fuzz", of two pages. */
#include "base/check.h"
#include "http/api/http_api.h"
#include "http/http_conn.h"
#include "http/http_front.h"
#include "http/http_shard.h"
#include "net/door.h"
#include "net/helpers.h"
#include "os/shm_guard.h"
#include "regions/region.h"
#include "regions/regions.h"
#include "server/server.h"
#include "server/worker.h"
#include "support/fuzz_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEY   "/nereid-fuzz"
#define BYTES 8192
#define MOST  (4 * BYTES)

static struct http_front *front;
static int memory;
static struct regions *on;
static struct regions *off;

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

/* As the executable does. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!shm_guard_fault(info->si_addr))
        signal(number, SIG_DFL);
}

static void end(void)
{
    shm_unlink(KEY);
}

static void prepare(struct worker *w)
{
    struct sigaction act = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGBUS, &act, NULL) == 0);
    memory = shm_open(KEY, O_RDWR | O_CREAT, 0600);
    CHECK(memory >= 0 && atexit(end) == 0);
    on = regions_new(true, MOST);
    off = regions_new(false, MOST);
    CHECK(!http_front_open(w->server, &http_api_service, "127.0.0.1", 0, false, &(struct door){0},
                           &front));
    helpers_free(front->helpers);
    front->helpers = helpers_new(0); /* no thread: jobs run at once */
    fuzz_server_forgive = forgive;
}

/* Nobody uses a region, so all can go, and nothing stays mapped. */
static void forget_all(void)
{
    struct err *e = regions_unregister(on, (struct regions_name){"", 0});
    CHECK(!e && region_mapped_bytes() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct worker *w = fuzz_server_worker();
    struct regions *own = w->server->regions;
    if (!front)
        prepare(w);
    w->server->regions = data[0] & 1 ? on : off;
    CHECK(ftruncate(memory, BYTES) == 0);
    fuzz_server_fresh();
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd)};
    http_conn_open(&front->shards[0], fd);
    size_t half = data[0] & 2 ? size / 2 : size - 1;
    fuzz_server_send(&c, data + 1, half, data[0] / 4);
    if (data[0] & 2)
        CHECK(ftruncate(memory, 0) == 0);
    fuzz_server_send(&c, data + 1 + half, size - 1 - half, data[0] / 4);
    fuzz_server_hang_up(&c);
    fuzz_server_settle(open_connections);
    CHECK(c.received < 9 || memcmp(c.first, "HTTP/1.1 ", 9) == 0);
    w->server->regions = own;
    forget_all();
    return 0;
}
