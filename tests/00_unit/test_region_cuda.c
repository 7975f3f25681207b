/* regions: those on a GPU, with the stand-in of tests/cuda in the driver's place. The memory is of
 * another process, as it must be. */
#include "regions/regions.h"

#include "gpu/gpu.h"
#include "gpu/gpu_copy.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "nereid/cuda_driver.h"
#include "os/dl.h"
#include "regions/region.h"
#include "regions/regions_lend.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES ((size_t)8192)
#define MOST  (4 * BYTES)

static const char numbers_config[] =
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_UINT8 dims: [ -1 ] }] "
    "output [{ name: 'o' data_type: TYPE_UINT8 dims: [ -1 ] }]";

static void (*plan)(const char *);
static long (*count)(const char *);
static pid_t client;
static int until; /* the client stays until it is closed */
static struct cuda_ipc_handle handle;
static struct regions *all;

/* The client: memory on a device, whose handle it writes. */
static void share(int to, int from)
{
    const struct cuda_driver *c = gpu_driver();
    struct cuda_ipc_handle h;
    cuda_address address;
    char end;
    err_free(gpu_enter(0));
    if (!c || c->memory_alloc(&address, BYTES) || c->ipc_get(&h, address) ||
        write(to, &h, sizeof(h)) != (ssize_t)sizeof(h) || read(from, &end, 1) != 0)
        _exit(1);
    _exit(0);
}

static int begin(void **state)
{
    (void)state;
    struct dl *library;
    struct dl_function wanted[] = {{"nereid_standin_plan", &plan},
                                   {"nereid_standin_count", &count}};
    int up[2], down[2];
    unit_succeeds(dl_open(CUDA_DRIVER_LIBRARY, &library));
    assert_int_equal(dl_functions(library, wanted, 2), 2);
    setenv("NEREID_CUDA_DEVICES", "8.0:64,8.0:64", 1);
    gpu_open(GPU_CAPABILITY);
    assert_int_equal(pipe(up) | pipe(down), 0);
    client = fork();
    if (!client) {
        close(down[1]);
        share(up[1], down[0]);
    }
    close(up[1]);
    close(down[0]);
    until = down[1];
    assert_int_equal(read(up[0], &handle, sizeof(handle)), sizeof(handle));
    close(up[0]);
    all = regions_new(true, MOST);
    return 0;
}

static int end(void **state)
{
    (void)state;
    int status = 1;
    regions_free(all);
    close(until);
    assert_int_equal(waitpid(client, &status, 0), client);
    gpu_close();
    assert_int_equal(count("ipc") + count("context") + count("stream") + count("pushed"), 0);
    assert_int_equal(count("wrong"), 0);
    return status;
}

static struct regions_name named(const char *text)
{
    return (struct regions_name){text, strlen(text)};
}

static struct err *put(const char *name, int64_t device, uint64_t bytes)
{
    return regions_register_cuda(all, named(name), &handle, device, bytes);
}

static void drop_all(void)
{
    unit_succeeds(regions_unregister(all, REGION_CUDA, named("")));
    while (region_mapped_bytes()) /* what a request had last is closed on a thread */
        sched_yield();
    assert_int_equal(count("ipc"), 0);
}

static void what_can_be_opened(void **state)
{
    (void)state;
    static const char none[] = "failed to register shared memory region: invalid args";
    static const char outside[] = "failed to register shared memory region 'r': invalid args";
    static const struct cuda_ipc_handle no_handle;
    plan("");
    unit_succeeds(put("whole", 0, BYTES));
    unit_succeeds(put("empty", 0, 0)); /* of no use; the reference takes it */
    unit_fails(put("whole", 0, 1), STATUS_ALREADY_EXISTS, "'whole' already");
    unit_fails(put("r", 0, BYTES + 1), STATUS_INVALID_ARG, outside);
    unit_fails(put("r", 0, UINT64_MAX), STATUS_INVALID_ARG, outside);
    unit_fails(put("r", 1, 1), STATUS_INVALID_ARG, none);
    unit_fails(put("r", 2, 1), STATUS_INVALID_ARG, none);
    unit_fails(put("r", -1, 1), STATUS_INVALID_ARG, none);
    unit_fails(regions_register_cuda(all, named("r"), &no_handle, 0, 1), STATUS_INVALID_ARG, none);
    unit_fails(put("\xff", 0, 1), STATUS_INVALID_ARG, "is UTF-8");
    assert_int_equal(count("ipc"), 2);
    drop_all();
}

/* The first call of each that registering makes fails: nothing stays open. */
static void calls_that_fail(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuCtxPushCurrent_v2:1=719", "cuIpcOpenMemHandle_v2:1=719",
                                        "cuMemGetAddressRange_v2:1=719"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        plan(calls[i]);
        unit_fails(put("r", 0, 1), STATUS_INVALID_ARG, "invalid args");
        assert_int_equal(count("ipc") + count("pushed"), 0);
        unit_succeeds(put("r", 0, 1));
        drop_all();
    }
    plan("");
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++)
        unit_succeeds(put(names[i], 0, BYTES));
    unit_fails(put("e", 0, 1), STATUS_UNAVAILABLE, "raise --client-shm-byte-size");
    assert_int_equal(count("ipc"), 4);
    unit_succeeds(regions_unregister(all, REGION_CUDA, named("b")));
    unit_succeeds(put("e", 0, BYTES));
    drop_all();
}

/* A region of one page costs the server next to nothing, so their number is bounded too. */
static void their_number_is_bounded(void **state)
{
    (void)state;
    char name[16];
    for (int i = 0; i < 4096; i++) {
        snprintf(name, sizeof(name), "%d", i);
        unit_succeeds(put(name, 0, 1));
    }
    unit_fails(put("one more", 0, 1), STATUS_UNAVAILABLE, "4096 are registered");
    unit_succeeds(regions_unregister(all, REGION_CUDA, named("0")));
    unit_succeeds(put("one more", 0, 1));
    drop_all();
}

static struct response *delivered;

static void keep(struct response *r, void *owner)
{
    (void)owner;
    delivered = r;
}

static void no_unpin(struct request_target *t)
{
    (void)t;
}

static struct request *new_request(struct request_target *t)
{
    *t = (struct request_target){.config = test_version_config(numbers_config), .unpin = no_unpin};
    return request_new(t, NULL, keep, NULL);
}

/* Answers a request with 16 bytes in place, by a backend that would like to have them somewhere.
 * Returns where it gets them. */
static enum buf_memory answer(struct request *r, enum buf_memory wish, int64_t device)
{
    struct response *a = response_new(r);
    struct tensor_output *o = response_add_output(a, "o", DATATYPE_UINT8, NULL, 0);
    unit_fails(response_output_memory_for_backend(a, o, 17, wish, device), STATUS_INTERNAL,
               "(16 bytes)");
    unit_succeeds(response_output_memory_for_backend(a, o, 16, wish, device));
    enum buf_memory got = o->memory;
    if (got == BUF_MEMORY_CPU)
        memset(o->data, 'y', 16);
    response_send(a, RESPONSE_FINAL, NULL);
    regions_lend_settle(delivered);
    return got;
}

static void read_back(const struct tensor_piece *p, size_t at, char *ret)
{
    struct gpu_copy_place from = {
        .data = (char *)(uintptr_t)p->data + at, .memory = p->memory, .device = p->device};
    unit_succeeds(gpu_copy(gpu_copy_host(ret), from, 16));
}

static void a_request_has_it_where_it_lies(void **state)
{
    (void)state;
    struct request_target t;
    struct request *r = new_request(&t);
    struct regions_part in = {named("r"), 16, 16}, out = {named("r"), 4096, 16};
    struct tensor_piece piece;
    char got[17] = "";
    plan("");
    unit_succeeds(put("r", 0, BYTES));
    unit_succeeds(regions_lend_input(all, r, &in, &piece));
    unit_succeeds(regions_lend_output(all, r, &out, "o"));
    assert_true(piece.memory == BUF_MEMORY_GPU && piece.device == 0 && piece.size == 16);
    assert_int_equal(request_place_of(r, "o")->memory.memory, BUF_MEMORY_GPU);
    assert_null(request_place_of(r, "p"));
    unit_fails(regions_unregister(all, REGION_CUDA, named("")), STATUS_INTERNAL,
               "following cuda shared memory regions: r ,");
    unit_succeeds(regions_unregister(all, REGION_SYSTEM, named("")));
    assert_int_equal(answer(r, BUF_MEMORY_CPU, 0), BUF_MEMORY_CPU);
    assert_null(delivered->error);
    assert_int_equal(delivered->outputs->memory, BUF_MEMORY_GPU); /* it is there now */
    read_back(&piece, 4096 - 16, got);
    assert_string_equal(got, "yyyyyyyyyyyyyyyy");
    unit_succeeds(regions_unregister(all, REGION_CUDA, named("")));
    assert_int_equal(count("ipc"), 1); /* the request has it still */
    response_free(delivered);
    request_release(r);
    drop_all();
    config_unref((struct model_config *)(uintptr_t)t.config);
}

/* Only who asks for memory of that very GPU gets the region itself. */
static void who_gets_the_region_itself(void **state)
{
    (void)state;
    static const struct {
        enum buf_memory wish;
        int64_t device;
        enum buf_memory got;
    } cases[] = {
        {BUF_MEMORY_GPU, 0, BUF_MEMORY_GPU},
        {BUF_MEMORY_GPU, 1, BUF_MEMORY_CPU},
        {BUF_MEMORY_CPU_PINNED, 0, BUF_MEMORY_CPU},
        {BUF_MEMORY_CPU, 0, BUF_MEMORY_CPU},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct request_target t;
        struct request *r = new_request(&t);
        struct regions_part out = {named("r"), 0, 16};
        plan("");
        unit_succeeds(put("r", 0, BYTES));
        unit_succeeds(regions_lend_output(all, r, &out, "o"));
        assert_int_equal(answer(r, cases[i].wish, cases[i].device), cases[i].got);
        assert_int_equal(count("cuMemcpyAsync"), cases[i].got == BUF_MEMORY_CPU);
        response_free(delivered);
        request_release(r);
        drop_all();
        config_unref((struct model_config *)(uintptr_t)t.config);
    }
}

static void an_output_that_cannot_be_brought(void **state)
{
    (void)state;
    struct request_target t;
    struct request *r = new_request(&t);
    struct regions_part out = {named("r"), 0, 16};
    unit_succeeds(put("r", 0, BYTES));
    unit_succeeds(regions_lend_output(all, r, &out, "o"));
    plan("cuMemcpyAsync:1=719");
    assert_int_equal(answer(r, BUF_MEMORY_CPU, 0), BUF_MEMORY_CPU);
    unit_fails(err_copy(delivered->error), STATUS_INTERNAL,
               "output 'o' in shared memory region 'r': copying 16 bytes");
    response_free(delivered);
    request_release(r);
    drop_all();
    config_unref((struct model_config *)(uintptr_t)t.config);
}

/* The driver does not answer: whoever frees the request does not wait for it. */
static void who_frees_a_request_does_not_close(void **state)
{
    (void)state;
    char folder[] = "/tmp/region-XXXXXX", pipe[32], gate[64];
    struct request_target t;
    struct request *r = new_request(&t);
    struct regions_part out = {named("r"), 0, 16};
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof(pipe), "%s/gate", folder);
    snprintf(gate, sizeof(gate), "cuIpcCloseMemHandle:1=%s", pipe);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    plan("");
    setenv("NEREID_CUDA_GATE", gate, 1);
    unit_succeeds(put("r", 0, BYTES));
    unit_succeeds(regions_lend_output(all, r, &out, "o"));
    assert_int_equal(answer(r, BUF_MEMORY_CPU, 0), BUF_MEMORY_CPU);
    unit_succeeds(regions_unregister(all, REGION_CUDA, named("r")));
    alarm(60); /* for one who does wait */
    response_free(delivered);
    request_release(r);
    alarm(0);
    int held = open(pipe, O_WRONLY | O_CLOEXEC); /* somebody is in the call */
    assert_true(held >= 0);
    assert_int_equal(count("ipc"), 1);
    assert_int_equal(region_mapped_bytes(), BYTES);
    unsetenv("NEREID_CUDA_GATE");
    close(held);
    drop_all();
    unlink(pipe);
    rmdir(folder);
    config_unref((struct model_config *)(uintptr_t)t.config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(what_can_be_opened),
        UNIT(calls_that_fail),
        UNIT(bytes_are_bounded),
        UNIT(their_number_is_bounded),
        UNIT(a_request_has_it_where_it_lies),
        UNIT(who_gets_the_region_itself),
        UNIT(an_output_that_cannot_be_brought),
        UNIT(who_frees_a_request_does_not_close),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
