/* Readings of GPUs, with the stand-ins of CUDA's driver and of NVML (tests/cuda) in their places. */
#include "gpu/gpu_meter.h"
#include "gpu/nvml.h"
#include "support/unit.h"

#include "base/fault.h"
#include "os/dl.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void (*plan)(const char *);
static void (*used_energy)(long mj);
static void (*set_busy)(long percent);
static long (*count)(const char *);

static struct gpu_meter_reading read[GPU_MAX];

static int find_standin(void **state)
{
    (void)state;
    struct dl *library;
    struct dl_function wanted[] = {{"nereid_nvml_plan", &plan},
                                   {"nereid_nvml_energy", &used_energy},
                                   {"nereid_nvml_busy", &set_busy},
                                   {"nereid_nvml_count", &count}};
    unit_succeeds(dl_open(NVML_LIBRARY, &library));
    assert_int_equal(dl_functions(library, wanted, 4), 4);
    return 0;
}

/* The usual patience, and one that is enough for any machine. */
static const struct gpu_meter_patience usual = {.end = TIME_S(1), .stale = TIME_S(2)};
static const struct gpu_meter_patience endless = {.end = TIME_S(60), .stale = TIME_S(60)};
static unsigned servers;

static void open_server(void)
{
    gpu_open(GPU_CAPABILITY);
    servers++;
}

static void close_server(void)
{
    servers--;
    gpu_close();
}

/* Also after a test that failed. */
static int close_servers(void **state)
{
    (void)state;
    while (servers)
        close_server();
    return 0;
}

static void begin(const char *devices, const char *failing)
{
    setenv("NEREID_CUDA_DEVICES", devices, 1);
    gpu_meter_be_patient(endless);
    plan(failing);
    open_server();
}

static void end(void)
{
    close_server();
    assert_int_equal(count("open"), 0);
    assert_int_equal(count("wrong"), 0);
    assert_int_equal(gpu_meter_read(read), 0);
}

/* Lets other threads run; a minute without what is waited for fails the test. */
static void wait_more(time_ns began)
{
    assert_true(clock_now_ns() - began < TIME_S(60));
    sched_yield();
}

/* Waits for `n` calls of a symbol. */
static void wait_for(const char *symbol, long n)
{
    for (time_ns began = clock_now_ns(); count(symbol) < n;)
        wait_more(began);
}

/* Waits until `n` GPUs were read. */
static void wait_for_gpus(size_t n)
{
    for (time_ns began = clock_now_ns(); gpu_meter_read(read) < n;)
        wait_more(began);
    assert_int_equal(gpu_meter_read(read), n);
}

static void test_readings(void **state)
{
    (void)state;
    begin("8.0:64,5.2:32,9.0:16", "");
    gpu_meter_want(TIME_S(3600));
    assert_int_equal(gpu_meter_read(read), 0);
    gpu_look();
    wait_for_gpus(2); /* 5.2 is not used */
    assert_string_equal(read[0].uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00");
    assert_string_equal(read[1].uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae02");
    assert_int_equal(read[1].busy_ppm, 120000);
    assert_int_equal(read[1].total_bytes, 16 << 20);
    assert_int_equal(read[1].used_bytes, (4 << 20) + 2);
    assert_int_equal(read[1].power_mw, 52000);
    assert_int_equal(read[1].limit_mw, 300000);
    assert_int_equal(read[1].energy_mj, 0);
    end(); /* although the next reading is an hour away */
    assert_int_equal(count("nvmlDeviceGetPowerUsage"), 2);
}

static void test_nobody_wants_any(void **state)
{
    (void)state;
    begin("8.0", "");
    gpu_look();
    end();
    begin("8.0", "");
    gpu_meter_want(1); /* and nobody looks for GPUs */
    end();
    begin("", "");
    gpu_meter_want(1);
    gpu_look(); /* there is none */
    end();
    assert_int_equal(count("nvmlInit_v2"), 0);
}

/* A second server wants some; the first did not, and GPUs were found since. */
static void test_wanted_later(void **state)
{
    (void)state;
    begin("8.0", "");
    gpu_look();
    open_server();
    gpu_meter_want(TIME_S(3600));
    gpu_meter_want(TIME_S(3600));
    wait_for_gpus(1);
    close_server();
    assert_int_equal(gpu_meter_read(read), 1); /* one server is left */
    end();
    assert_int_equal(count("nvmlInit_v2"), 1);
}

/* The log tells; a later server tries again. */
static void test_no_thread(void **state)
{
    (void)state;
    begin("8.0", "");
    gpu_look();
    fault_arm(1);
    gpu_meter_want(TIME_S(3600));
    fault_arm(0);
    assert_int_equal(gpu_meter_read(read), 0);
    gpu_meter_want(TIME_S(3600));
    wait_for_gpus(1);
    end();
    assert_int_equal(count("nvmlInit_v2"), 1);
}

static void test_energy(void **state)
{
    (void)state;
    begin("8.0", "");
    gpu_meter_want(0);
    time_ns began = clock_now_ns();
    gpu_look();
    wait_for("nvmlDeviceGetTotalEnergyConsumption", 4);
    assert_true(clock_now_ns() - began >= 3 * TIME_MS(100)); /* however often it is wanted */
    gpu_meter_read(read);
    uint64_t before = read[0].energy_mj;
    assert_true(before >= 2 * 1500 && before % 1500 == 0);
    used_energy(0); /* NVML counts from the beginning */
    wait_for("nvmlDeviceGetTotalEnergyConsumption",
             count("nvmlDeviceGetTotalEnergyConsumption") + 3);
    gpu_meter_read(read);
    assert_true(read[0].energy_mj > before && read[0].energy_mj < before + 10000000);
    end();
}

static void test_what_is_not_told(void **state)
{
    (void)state;
    begin("8.0", "nvmlDeviceGetUtilizationRates:1+=3,nvmlDeviceGetMemoryInfo_v2:1+=3,"
                 "nvmlDeviceGetPowerUsage:1+=3,nvmlDeviceGetPowerManagementLimit:1+=3,"
                 "nvmlDeviceGetTotalEnergyConsumption:1+=3");
    gpu_meter_want(1);
    gpu_look();
    wait_for_gpus(1);
    const uint64_t unknown = GPU_METER_UNKNOWN;
    assert_true(read[0].busy_ppm == unknown && read[0].total_bytes == unknown &&
                read[0].used_bytes == unknown && read[0].power_mw == unknown &&
                read[0].limit_mw == unknown && read[0].energy_mj == unknown);
    end();
}

static void test_nvml_that_fails(void **state)
{
    (void)state;
    begin("8.0", "nvmlInit_v2:1=999");
    gpu_meter_want(1);
    gpu_look();
    wait_for("nvmlInit_v2", 1);
    end();
    begin("8.0,8.0", "nvmlDeviceGetHandleByUUID:1=6");
    gpu_meter_want(1);
    gpu_look();
    wait_for_gpus(1);
    assert_string_equal(read[0].uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01");
    end();
    begin("8.0", "nvmlDeviceGetHandleByUUID:1=6");
    gpu_meter_want(1);
    gpu_look();
    wait_for("nvmlShutdown", 1);
    end();
}

static char gate[] = "/tmp/nereid-gate-XXXXXX/pipe";

static void set_gate(const char *call, int number)
{
    char plan_of_gate[96];
    char *name = strrchr(gate, '/');
    memcpy(name - 6, "XXXXXX", 6);
    *name = '\0';
    assert_non_null(mkdtemp(gate));
    *name = '/';
    assert_int_equal(mkfifo(gate, 0600), 0);
    snprintf(plan_of_gate, sizeof(plan_of_gate), "%s:%d=%s", call, number, gate);
    setenv("NEREID_NVML_GATE", plan_of_gate, 1);
}

static void open_gate(void)
{
    FILE *pipe = fopen(gate, "we"); /* waits until the call waits */
    assert_non_null(pipe);
    remove(gate);
    char *name = strrchr(gate, '/');
    *name = '\0';
    remove(gate);
    *name = '/';
    fclose(pipe);
}

/* The server ends all the same, and so does the next one. A thread that NVML answers after that asks
 * nothing more, and does not shut down what another one uses. */
static void test_nvml_that_hangs(void **state)
{
    (void)state;
    static const char *const calls[] = {"nvmlInit_v2", "nvmlDeviceGetHandleByUUID",
                                        "nvmlDeviceGetPowerUsage"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        set_gate(calls[i], 1);
        begin("8.0,8.0", "");
        gpu_meter_want(1);
        gpu_look();
        wait_for(calls[i], 1);
        gpu_meter_be_patient(usual);
        close_server();
        gpu_meter_be_patient(endless);
        assert_int_equal(gpu_meter_read(read), 0);
        unsetenv("NEREID_NVML_GATE"); /* while no other thread reads the environment */
        open_server();
        gpu_meter_want(1);
        gpu_look();
        wait_for_gpus(2);
        open_gate();
        wait_for("nvmlDeviceGetTotalEnergyConsumption",
                 count("nvmlDeviceGetTotalEnergyConsumption") + 4);
        close_server();
        assert_int_equal(count("nvmlShutdown"), 1);
        assert_int_equal(count("open"), i + 1); /* as it was left */
        assert_int_equal(count("wrong"), 0);
    }
}

/* What it read before is told for some time, and then nothing, until it answers. */
static void test_readings_that_are_old(void **state)
{
    (void)state;
    set_gate("nvmlDeviceGetPowerUsage", 2);
    begin("8.0", "");
    gpu_meter_want(1);
    gpu_look();
    wait_for("nvmlDeviceGetPowerUsage", 2);
    assert_int_equal(gpu_meter_read(read), 1);
    gpu_meter_be_patient(usual);
    for (time_ns began = clock_now_ns(); gpu_meter_read(read) > 0;)
        wait_more(began);
    open_gate();
    wait_for_gpus(1);
    end();
    unsetenv("NEREID_NVML_GATE");
}

static void test_more_than_all_of_its_time(void **state)
{
    (void)state;
    set_busy(100);
    begin("8.0,8.0", "");
    gpu_meter_want(TIME_S(3600));
    gpu_look();
    wait_for_gpus(2);
    assert_int_equal(read[0].busy_ppm, 1000000);
    assert_true(read[1].busy_ppm == GPU_METER_UNKNOWN); /* 101 % */
    assert_int_equal(read[1].power_mw, 51000);
    end();
    set_busy(10);
}

#define METER(fn) cmocka_unit_test_teardown(fn, close_servers)

int main(void)
{
    const struct CMUnitTest tests[] = {METER(test_readings),
                                       METER(test_nobody_wants_any),
                                       METER(test_wanted_later),
                                       METER(test_no_thread),
                                       METER(test_energy),
                                       METER(test_what_is_not_told),
                                       METER(test_nvml_that_fails),
                                       METER(test_readings_that_are_old),
                                       METER(test_more_than_all_of_its_time),
                                       METER(test_nvml_that_hangs)};
    return cmocka_run_group_tests(tests, find_standin, NULL);
}
