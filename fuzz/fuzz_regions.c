/* Shared memory of clients over a whole HTTP connection, with models behind it. Of the first byte
 * bit 0 says whether clients may register any, bit 1 that the memory is cut short halfway; what is
 * left of it chooses how the rest is cut into pieces. The memory is "/nereid-fuzz", of two pages. */
#include "base/check.h"
#include "os/shm_guard.h"
#include "regions/region.h"
#include "regions/regions.h"
#include "server/server.h"
#include "server/worker.h"
#include "support/fuzz_http.h"
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

static bool ready;
static int memory;
static struct regions *on;
static struct regions *off;

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

static void prepare(void)
{
    struct sigaction act = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGBUS, &act, NULL) == 0);
    memory = shm_open(KEY, O_RDWR | O_CREAT, 0600);
    CHECK(memory >= 0 && atexit(end) == 0);
    on = regions_new(true, MOST);
    off = regions_new(false, MOST);
    fuzz_http_front();
    ready = true;
}

/* Nobody uses a region, so all can go, and nothing stays mapped. */
static void forget_all(void)
{
    struct err *e = regions_unregister(on, REGION_SYSTEM, (struct regions_name){"", 0});
    CHECK(!e && region_mapped_bytes() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct worker *w = fuzz_server_worker();
    struct regions *own = w->server->regions;
    if (!ready)
        prepare();
    w->server->regions = data[0] & 1 ? on : off;
    CHECK(ftruncate(memory, BYTES) == 0);
    fuzz_server_fresh();
    int fd;
    struct fuzz_client c = {.fd = fuzz_server_open(&fd)};
    fuzz_http_serve(fd);
    size_t half = data[0] & 2 ? size / 2 : size - 1;
    fuzz_server_send(&c, data + 1, half, data[0] / 4);
    if (data[0] & 2)
        CHECK(ftruncate(memory, 0) == 0);
    fuzz_server_send(&c, data + 1 + half, size - 1 - half, data[0] / 4);
    fuzz_server_hang_up(&c);
    fuzz_http_settle();
    fuzz_http_check(&c);
    w->server->regions = own;
    forget_all();
    return 0;
}
