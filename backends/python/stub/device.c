#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "nereid/cuda_driver.h"

/* What is done with a GPU, and what came of it. */
struct errand {
    int32_t device;
    void *to; /* NULL = nothing is copied */
    const void *from;
    uint64_t bytes;
    const char *failed; /* NULL = it went well */
    int result;         /* of what failed */
};

static struct cuda_driver driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static char driver_absence[256]; /* why it cannot be used; "" = it can */

/* It is never closed: the model's libraries have it open too. */
static void driver_open(void)
{
    static const struct cuda_driver_symbol symbols[] = CUDA_DRIVER_SYMBOLS;
    void *library = dlopen(CUDA_DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *missing = library ? NULL : dlerror();
    for (size_t i = 0; library && i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(library, symbols[i].name);
        memcpy((char *)&driver + symbols[i].offset, &address, sizeof address);
        if (!address)
            missing = symbols[i].name;
    }
    int result = missing ? CUDA_SUCCESS : driver.init(0);
    if (result != CUDA_SUCCESS && (driver.error_name(result, &missing) != 0 || !missing))
        missing = "cuInit";
    if (missing)
        snprintf(driver_absence, sizeof driver_absence, "%s", missing);
}

/* Notes the first call that failed. */
static bool errand_well(struct errand *e, int result, const char *what)
{
    if (result != CUDA_SUCCESS && !e->failed) {
        e->failed = what;
        e->result = result;
    }
    return result == CUDA_SUCCESS;
}

/* Within the context. */
static void errand_work(struct errand *e)
{
    if (errand_well(e, driver.context_sync(), "cuCtxSynchronize") && e->to)
        errand_well(e, driver.copy_out(e->to, (uintptr_t)e->from, e->bytes), "cuMemcpyDtoH");
}

/* The context is retained for as long: whoever made the tensor has it too. */
static void errand_run(struct errand *e)
{
    struct cuda_context *context, *was;
    cuda_device handle;
    if (!errand_well(e, driver.device_get(&handle, e->device), "cuDeviceGet") ||
        !errand_well(e, driver.context_retain(&context, handle), "cuDevicePrimaryCtxRetain"))
        return;
    if (errand_well(e, driver.context_push(context), "cuCtxPushCurrent")) {
        errand_work(e);
        errand_well(e, driver.context_pop(&was), "cuCtxPopCurrent");
    }
    errand_well(e, driver.context_release(handle), "cuDevicePrimaryCtxRelease");
}

static bool errand_do(struct errand *e, PyObject *what)
{
    Py_BEGIN_ALLOW_THREADS pthread_once(&driver_once, driver_open);
    if (!driver_absence[0])
        errand_run(e);
    Py_END_ALLOW_THREADS if (!driver_absence[0] && !e->failed) return true;
    const char *name = NULL;
    PyObject *text;
    if (driver_absence[0])
        text =
            PyUnicode_FromFormat("tensor '%U' is on GPU %d, and CUDA's driver cannot be used: %s",
                                 what, (int)e->device, driver_absence);
    else if (driver.error_name(e->result, &name) == CUDA_SUCCESS && name)
        text = PyUnicode_FromFormat("tensor '%U' on GPU %d: %s failed: %s (%d)", what,
                                    (int)e->device, e->failed, name, e->result);
    else
        text = PyUnicode_FromFormat("tensor '%U' on GPU %d: %s failed: %d", what, (int)e->device,
                                    e->failed, e->result);
    if (text)
        PyErr_SetObject(core.exception, text);
    Py_XDECREF(text);
    return false;
}

bool device_settle(int32_t device, PyObject *what)
{
    return errand_do(&(struct errand){.device = device}, what);
}

bool device_fetch(int32_t device, PyObject *what, void *to, const void *from, uint64_t bytes)
{
    struct errand e = {.device = device, .to = to, .from = from, .bytes = bytes};
    return errand_do(&e, what);
}
