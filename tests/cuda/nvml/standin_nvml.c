/* A stand-in for NVML, a library of the same name without a GPU, beside that of CUDA's driver. It
 * knows the GPUs of NEREID_CUDA_DEVICES (standin.h), by the UUIDs that they have there. GPU n was
 * busy for 10 + n per cent, a quarter of its memory and n bytes are in use, it draws 50 + n W, may
 * draw 300 W, and has used 1.5 J more each time somebody asks.
 *
 * NEREID_NVML_FAIL    calls that fail, as in NEREID_CUDA_FAIL
 * NEREID_NVML_GATE    a call that waits, as in NEREID_CUDA_GATE
 * NEREID_NVML_REPORT  file to which every process that calls nvmlInit appends one line of JSON at
 *                     its end: how often each function was called, what was done wrong */
#include "gpu/nvml.h"

#include "plan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES 16
#define MIB     1048576ull

#define STANDIN_CALL(type, member, symbol, parameters) CALL_##symbol,
enum call { NVML_CALLS(STANDIN_CALL) CALLS };
#define STANDIN_NAME(type, member, symbol, parameters) #symbol,
static const char *const names[CALLS] = {NVML_CALLS(STANDIN_NAME)};
#define STANDIN_DECLARE(type, member, symbol, parameters) \
    __attribute__((visibility("default"))) type symbol parameters;
NVML_CALLS(STANDIN_DECLARE)

/* What C tests call, found with dlsym.
 * nereid_nvml_plan - as NEREID_NVML_FAIL, from now on; counts of calls begin again.
 * nereid_nvml_energy - what every GPU has used so far, in millijoules.
 * nereid_nvml_busy - how busy the first GPU is, in per cent; each further one is so by 1 more.
 * nereid_nvml_count - calls of a symbol; "wrong": what was done wrong; "open": nvmlInit without
 *                     nvmlShutdown. */
__attribute__((visibility("default"))) void nereid_nvml_plan(const char *plan);
__attribute__((visibility("default"))) void nereid_nvml_energy(long mj);
__attribute__((visibility("default"))) void nereid_nvml_busy(long percent);
__attribute__((visibility("default"))) long nereid_nvml_count(const char *what);

struct nvml_device {
    unsigned long long bytes, energy;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static struct nvml_device devices[DEVICES];
static unsigned count;
static unsigned busy = 10; /* per cent of the first */
static long calls[CALLS];
static long open_count, wrong_count;
static char own_plan[1024];
static int planned;

/* A call begins. Returns the result with which it is to fail, without the lock then. */
static int begin(enum call call, int needs_init)
{
    pthread_mutex_lock(&lock);
    long n = ++calls[call];
    const char *gate = plan_gate(getenv("NEREID_NVML_GATE"), names[call], n);
    if (gate) {
        pthread_mutex_unlock(&lock);
        plan_wait(gate);
        pthread_mutex_lock(&lock);
    }
    int rc = plan_result(planned ? own_plan : getenv("NEREID_NVML_FAIL"), names[call], n);
    if (!rc && needs_init && !open_count) {
        wrong_count++;
        rc = NVML_ERROR_UNINITIALIZED;
    }
    if (rc)
        pthread_mutex_unlock(&lock);
    return rc;
}

static int end(int rc)
{
    pthread_mutex_unlock(&lock);
    return rc;
}

/* The same as in standin_device.c. */
static void read_nvml_devices(void)
{
    const char *at = getenv("NEREID_CUDA_DEVICES");
    at = at ? at : "8.0:256";
    for (count = 0; *at && count < DEVICES; count++) {
        size_t len = strcspn(at, ",");
        const char *mib = memchr(at, ':', len);
        devices[count].energy = 7000000;
        devices[count].bytes = (mib ? strtoull(mib + 1, NULL, 10) : 256) * MIB;
        at += len + (at[len] == ',');
    }
}

int nvmlInit_v2(void)
{
    int rc = begin(CALL_nvmlInit_v2, 0);
    if (rc)
        return rc;
    if (!open_count++)
        read_nvml_devices();
    return end(NVML_SUCCESS);
}

int nvmlShutdown(void)
{
    int rc = begin(CALL_nvmlShutdown, 1);
    if (rc)
        return rc;
    open_count--;
    return end(NVML_SUCCESS);
}

const char *nvmlErrorString(int result)
{
    return result == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : "an error of the stand-in";
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **ret)
{
    static const char common[] = "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae";
    int rc = begin(CALL_nvmlDeviceGetHandleByUUID, 1);
    if (rc)
        return rc;
    unsigned long n = strncmp(uuid, common, sizeof(common) - 1) == 0
                          ? strtoul(uuid + sizeof(common) - 1, NULL, 16)
                          : DEVICES;
    if (n >= count)
        return end(NVML_ERROR_NOT_FOUND);
    *ret = &devices[n];
    return end(NVML_SUCCESS);
}

static unsigned number(const struct nvml_device *d)
{
    return (unsigned)(d - devices);
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *d, struct nvml_utilization *ret)
{
    int rc = begin(CALL_nvmlDeviceGetUtilizationRates, 1);
    if (rc)
        return rc;
    *ret = (struct nvml_utilization){.gpu = busy + number(d), .memory = 99};
    return end(NVML_SUCCESS);
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *d, struct nvml_memory *ret)
{
    int rc = begin(CALL_nvmlDeviceGetMemoryInfo_v2, 1);
    if (rc)
        return rc;
    if (ret->version != NVML_MEMORY_VERSION)
        return end(NVML_ERROR_INVALID_ARGUMENT);
    ret->total = d->bytes;
    ret->used = d->bytes / 4 + number(d);
    ret->reserved = MIB;
    ret->free = ret->total - ret->used - ret->reserved;
    return end(NVML_SUCCESS);
}

int nvmlDeviceGetPowerUsage(struct nvml_device *d, unsigned *ret)
{
    int rc = begin(CALL_nvmlDeviceGetPowerUsage, 1);
    if (rc)
        return rc;
    *ret = 50000 + 1000 * number(d);
    return end(NVML_SUCCESS);
}

int nvmlDeviceGetPowerManagementLimit(struct nvml_device *d, unsigned *ret)
{
    int rc = begin(CALL_nvmlDeviceGetPowerManagementLimit, 1);
    if (rc)
        return rc;
    (void)d;
    *ret = 300000;
    return end(NVML_SUCCESS);
}

int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *d, unsigned long long *ret)
{
    int rc = begin(CALL_nvmlDeviceGetTotalEnergyConsumption, 1);
    if (rc)
        return rc;
    *ret = d->energy += 1500;
    return end(NVML_SUCCESS);
}

void nereid_nvml_plan(const char *text)
{
    pthread_mutex_lock(&lock);
    snprintf(own_plan, sizeof(own_plan), "%s", text);
    planned = 1;
    memset(calls, 0, sizeof(calls));
    pthread_mutex_unlock(&lock);
}

void nereid_nvml_energy(long mj)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++)
        devices[i].energy = (unsigned long long)mj;
    pthread_mutex_unlock(&lock);
}

void nereid_nvml_busy(long percent)
{
    pthread_mutex_lock(&lock);
    busy = (unsigned)percent;
    pthread_mutex_unlock(&lock);
}

long nereid_nvml_count(const char *what)
{
    pthread_mutex_lock(&lock);
    long found = strcmp(what, "wrong") == 0 ? wrong_count : open_count;
    for (int i = 0; i < CALLS; i++)
        if (strcmp(what, names[i]) == 0)
            found = calls[i];
    pthread_mutex_unlock(&lock);
    return found;
}

__attribute__((destructor)) static void write_nvml_report(void)
{
    const char *path = getenv("NEREID_NVML_REPORT");
    FILE *f = path && calls[CALL_nvmlInit_v2] ? fopen(path, "a") : NULL;
    if (!f)
        return;
    fprintf(f, "{\"pid\":%d,\"open\":%ld,\"wrong\":%ld,\"calls\":{", (int)getpid(), open_count,
            wrong_count);
    for (int i = 0; i < CALLS; i++)
        fprintf(f, "%s\"%s\":%ld", i ? "," : "", names[i], calls[i]);
    fprintf(f, "}}\n");
    fclose(f);
}
