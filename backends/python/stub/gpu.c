#include "gpu.h"

#include <stdlib.h>
#include <string.h>

#include "../device.h"

/* Memory of the server's. */
struct gpu_memory {
    uint64_t place; /* its number */
    struct wire_gpu where;
    cuda_address opened; /* 0 = not yet */
};

static bool gpu_do(struct device_task *task, PyObject *what)
{
    bool well;
    Py_BEGIN_ALLOW_THREADS well = device_do(task);
    Py_END_ALLOW_THREADS if (well) return true;
    char said[400];
    device_said(task, said, sizeof said);
    PyObject *text = PyUnicode_FromFormat("tensor '%U' on %s", what, said);
    if (text)
        PyErr_SetObject(core.exception, text);
    Py_XDECREF(text);
    return false;
}

bool gpu_settle(int32_t device, PyObject *what)
{
    return gpu_do(&(struct device_task){.what = DEVICE_SETTLE, .device = device}, what);
}

bool gpu_fetch(int32_t device, PyObject *what, void *to, const void *from, uint64_t bytes)
{
    struct device_task task = {
        .what = DEVICE_FETCH, .device = device, .from = (uintptr_t)from, .to = to, .bytes = bytes};
    return gpu_do(&task, what);
}

/* There is nobody to tell a failure: the memory stays open here, and the server uses it again. */
static void gpu_close(int32_t device, cuda_address opened)
{
    struct device_task task = {.what = DEVICE_CLOSE, .device = device, .from = opened};
    Py_BEGIN_ALLOW_THREADS(void) device_do(&task);
    Py_END_ALLOW_THREADS
}

static void lent_end(PyObject *capsule)
{
    struct gpu_memory *memory = PyCapsule_GetPointer(capsule, NULL);
    if (memory->opened)
        gpu_close(memory->where.device, memory->opened);
    channel_give_back(memory->place);
    free(memory);
}

PyObject *gpu_lent(const struct wire_tensor *tensor)
{
    struct gpu_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return PyErr_NoMemory();
    *memory = (struct gpu_memory){.place = tensor->where, .where = tensor->gpu};
    PyObject *capsule = PyCapsule_New(memory, NULL, lent_end);
    if (!capsule)
        free(memory);
    return capsule;
}

char *gpu_reach(PyObject *lent, PyObject *what)
{
    struct gpu_memory *memory = PyCapsule_GetPointer(lent, NULL);
    if (!memory->opened) {
        struct device_task task = {.what = DEVICE_OPEN, .device = memory->where.device};
        memcpy(task.handle.bytes, memory->where.handle, sizeof task.handle.bytes);
        bool well = gpu_do(&task, what);
        if (task.from && (!well || memory->opened))
            gpu_close(task.device, task.from); /* or another thread was first */
        else
            memory->opened = task.from;
        if (!well)
            return NULL;
    }
    return (char *)(uintptr_t)(memory->opened + memory->where.offset);
}
