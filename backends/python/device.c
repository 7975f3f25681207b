#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct cuda_driver driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static char driver_absence[256]; /* why it cannot be used; "" = it can */

/* It is never closed: others in this process have it open too. */
static void driver_open(void)
{
    void *library = dlopen(CUDA_DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *missing = library ? cuda_driver_fill(&driver, library) : dlerror();
    int result = missing ? CUDA_SUCCESS : driver.init(0);
    if (result != CUDA_SUCCESS && (driver.error_name(result, &missing) != 0 || !missing))
        missing = "cuInit";
    if (missing)
        snprintf(driver_absence, sizeof driver_absence, "%s", missing);
}

/* Notes the first call that failed. */
static bool device_well(struct device_task *t, int result, const char *what)
{
    if (result != CUDA_SUCCESS && !t->failed) {
        t->failed = what;
        t->result = result;
    }
    return result == CUDA_SUCCESS;
}

static void device_share(struct device_task *t)
{
    cuda_address base;
    size_t bytes;
    if (device_well(t, driver.memory_range(&base, &bytes, t->from), "cuMemGetAddressRange") &&
        device_well(t, driver.ipc_get(&t->handle, base), "cuIpcGetMemHandle"))
        t->offset = t->from - base;
}

/* Within the context. */
static void device_work(struct device_task *t)
{
    switch (t->what) {
    case DEVICE_SETTLE:
    case DEVICE_FETCH:
        if (device_well(t, driver.context_sync(), "cuCtxSynchronize") && t->what == DEVICE_FETCH)
            device_well(t, driver.copy_out(t->to, t->from, t->bytes), "cuMemcpyDtoH");
        break;
    case DEVICE_SHARE:
        device_share(t);
        break;
    case DEVICE_OPEN:
        device_well(t, driver.ipc_open(&t->from, t->handle, CUDA_IPC_LAZY_PEER_ACCESS),
                    "cuIpcOpenMemHandle");
        break;
    case DEVICE_CLOSE:
        device_well(t, driver.ipc_close(t->from), "cuIpcCloseMemHandle");
        break;
    }
}

/* The context is retained for as long; what is open keeps it. */
static void device_run(struct device_task *t)
{
    struct cuda_context *context, *was;
    cuda_device handle;
    if (!device_well(t, driver.device_get(&handle, t->device), "cuDeviceGet") ||
        !device_well(t, driver.context_retain(&context, handle), "cuDevicePrimaryCtxRetain"))
        return;
    if (device_well(t, driver.context_push(context), "cuCtxPushCurrent")) {
        device_work(t);
        device_well(t, driver.context_pop(&was), "cuCtxPopCurrent");
    }
    bool opened = t->what == DEVICE_OPEN && t->from;
    if (!opened)
        device_well(t, driver.context_release(handle), "cuDevicePrimaryCtxRelease");
    if (t->what == DEVICE_CLOSE)
        device_well(t, driver.context_release(handle), "cuDevicePrimaryCtxRelease");
}

bool device_do(struct device_task *task)
{
    pthread_once(&driver_once, driver_open);
    if (driver_absence[0])
        return false;
    device_run(task);
    return !task->failed;
}

void device_said(const struct device_task *task, char *text, size_t bytes)
{
    const char *name = NULL;
    int device = task->device;
    if (driver_absence[0])
        snprintf(text, bytes, "GPU %d: CUDA's driver cannot be used: %s", device, driver_absence);
    else if (driver.error_name(task->result, &name) == CUDA_SUCCESS && name)
        snprintf(text, bytes, "GPU %d: %s failed: %s (%d)", device, task->failed, name,
                 task->result);
    else
        snprintf(text, bytes, "GPU %d: %s failed: %d", device, task->failed, task->result);
}
