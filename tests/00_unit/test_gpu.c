/* The driver as src/gpu opens it, with the stand-in of tests/cuda in its place. */
#include "gpu/gpu.h"
#include "nereid/cuda_driver.h"
#include "support/unit.h"

#include "os/dl.h"
#include "os/thread.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void (*plan)(const char *);
static long (*count)(const char *);

static int find_standin(void **state)
{
    (void)state;
    struct dl *library;
    struct dl_function wanted[] = {{"nereid_standin_plan", &plan},
                                   {"nereid_standin_count", &count}};
    unit_succeeds(dl_open(CUDA_DRIVER_LIBRARY, &library));
    assert_int_equal(dl_functions(library, wanted, 2), 2);
    return 0;
}

static const struct gpu_list *begin(const char *devices, const char *failing)
{
    setenv("NEREID_CUDA_DEVICES", devices, 1);
    plan(failing);
    gpu_open(GPU_CAPABILITY);
    return gpu_look();
}

/* Ends the server; whatever it took of the driver is given back. */
static void end(void)
{
    gpu_close();
    plan("");
    assert_int_equal(count("context"), 0);
    assert_int_equal(count("pushed"), 0);
    assert_int_equal(count("wrong"), 0);
}

static void test_devices(void **state)
{
    (void)state;
    const struct gpu_list *l = begin("8.0:64,5.2:32,6.0:16", "");
    assert_null(l->absence);
    assert_int_equal(l->version, 12000);
    assert_int_equal(l->count, 3);
    assert_int_equal(l->devices[1].major, 5);
    assert_int_equal(l->devices[1].minor, 2);
    assert_int_equal(l->devices[1].bytes, 32 << 20);
    assert_string_equal(l->devices[1].name, "Stand-in 1");
    assert_string_equal(l->devices[1].uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01");
    assert_int_equal(l->usable_count, 2); /* 5.2 is too little, 6.0 is enough */
    assert_int_equal(l->usable[0], 0);
    assert_int_equal(l->usable[1], 2);
    assert_ptr_equal(gpu_at(2), &l->devices[2]);
    assert_null(gpu_at(3));
    assert_null(gpu_at(-1));
    assert_non_null(gpu_driver());
    end();
}

static void test_opens_nothing_unasked(void **state)
{
    (void)state;
    plan("");
    gpu_open(GPU_CAPABILITY);
    gpu_close();
    assert_int_equal(count("cuInit"), 0);
}

static void test_asks_the_driver_once(void **state)
{
    (void)state;
    begin("8.0", "");
    gpu_look();
    gpu_driver();
    assert_int_equal(count("cuInit"), 1);
    end();
}

static void test_the_first_server_decides(void **state)
{
    (void)state;
    setenv("NEREID_CUDA_DEVICES", "5.0", 1);
    plan("");
    gpu_open(5.0);
    gpu_open(9.0);
    assert_int_equal(gpu_look()->usable_count, 1);
    unit_succeeds(gpu_enter(0));
    gpu_leave();
    gpu_close();
    assert_int_equal(count("context"), 1); /* one server is left */
    end();
}

static void test_no_device(void **state)
{
    (void)state;
    const struct gpu_list *l = begin("", "");
    assert_non_null(strstr(l->absence, "CUDA_ERROR_NO_DEVICE"));
    assert_int_equal(l->count, 0);
    assert_null(gpu_driver());
    unit_fails(gpu_enter(0), STATUS_INVALID_ARG, "there is no GPU 0: starting the driver");
    end();
}

/* A machine of which a part does not answer counts as one without GPUs, and says why. */
static void test_failing_driver(void **state)
{
    (void)state;
    const char *const calls[] = {"cuInit:1=999",
                                 "cuDriverGetVersion:1=1",
                                 "cuDeviceGetCount:1=1",
                                 "cuDeviceGet:2=1",
                                 "cuDeviceGetAttribute:1=1",
                                 "cuDeviceGetAttribute:4=1",
                                 "cuDeviceGetName:2=1",
                                 "cuDeviceGetUuid:1=1",
                                 "cuDeviceTotalMem_v2:2=1",
                                 "cuInit:1=999,cuGetErrorName:1=1,cuGetErrorString:1=1"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const struct gpu_list *l = begin("8.0,8.0", calls[i]);
        assert_non_null(l->absence);
        assert_non_null(strstr(l->absence, ": CUDA says "));
        assert_int_equal(l->count + l->usable_count, 0);
        end();
    }
}

static void test_contexts(void **state)
{
    (void)state;
    begin("8.0,8.0", "");
    unit_succeeds(gpu_enter(0));
    unit_succeeds(gpu_enter(1));
    size_t free_bytes, total;
    assert_int_equal(gpu_driver()->memory_info(&free_bytes, &total), CUDA_SUCCESS);
    gpu_leave();
    gpu_leave();
    unit_succeeds(gpu_enter(1));
    gpu_leave();
    assert_int_equal(count("cuDevicePrimaryCtxRetain"), 2);
    assert_int_equal(count("cuCtxPopCurrent_v2"), 3);
    unit_fails(gpu_enter(2), STATUS_INVALID_ARG, "there is no GPU 2");
    end();
}

static void enter_the_second(void *unused)
{
    (void)unused;
    unit_succeeds(gpu_enter(1));
    gpu_leave();
}

/* The context of one GPU takes as long as it takes: who has another GPU, or only asks which there
 * are, goes on meanwhile, and who wants the same one waits for it. */
static void test_a_context_that_takes_long(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_gpu.XXXXXX", pipe[64], gate[128];
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof(pipe), "%s/gate", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    snprintf(gate, sizeof(gate), "cuDevicePrimaryCtxRetain:1=%s", pipe);
    setenv("NEREID_CUDA_GATE", gate, 1);
    begin("8.0,8.0", "");
    alarm(60); /* a lock that is held across the call would hold this test too */
    struct thread *first, *second;
    unit_succeeds(thread_start("first", enter_the_second, NULL, &first));
    int writer = open(pipe, O_WRONLY | O_CLOEXEC); /* returns once the call is at its gate */
    assert_true(writer >= 0);
    assert_int_equal(gpu_look()->count, 2);
    gpu_tell_failure();
    unit_succeeds(gpu_enter(0));
    gpu_leave();
    unit_succeeds(thread_start("second", enter_the_second, NULL, &second));
    close(writer);
    thread_join(first);
    thread_join(second);
    alarm(0);
    assert_int_equal(count("cuDevicePrimaryCtxRetain"), 2);
    unsetenv("NEREID_CUDA_GATE");
    unlink(pipe);
    rmdir(folder);
    end();
}

static void test_failing_contexts(void **state)
{
    (void)state;
    begin("8.0", "cuDevicePrimaryCtxRetain:1=2,cuCtxPushCurrent_v2:1=201");
    unit_fails(gpu_enter(0), STATUS_UNAVAILABLE,
               "opening GPU 0: CUDA says CUDA_ERROR_OUT_OF_MEMORY");
    unit_fails(gpu_enter(0), STATUS_INTERNAL,
               "entering GPU 0: CUDA says CUDA_ERROR_INVALID_CONTEXT");
    unit_succeeds(gpu_enter(0));
    gpu_leave();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_devices),
        UNIT(test_opens_nothing_unasked),
        UNIT(test_asks_the_driver_once),
        UNIT(test_the_first_server_decides),
        UNIT(test_no_device),
        UNIT(test_failing_driver),
        UNIT(test_contexts),
        UNIT(test_a_context_that_takes_long),
        UNIT(test_failing_contexts),
    };
    return cmocka_run_group_tests(tests, find_standin, NULL);
}
