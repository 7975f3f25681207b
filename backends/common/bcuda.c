#include "bcuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "berr.h"
#include "nereid/cuda_driver.h"

struct staged {
    struct staged *next;
    void *memory;
    uint64_t size;
};

struct bcuda {
    struct bcuda *next; /* among those that are closed and kept */
    int32_t device;
    enum bcuda_priority priority;
    cuda_device handle;
    struct cuda_context *context;
    struct cuda_stream *stream;
    struct cuda_event *event; /* that waits sleep on; NULL = they do not sleep */
    TRITONBACKEND_MemoryManager *manager;
    struct staged *staged;
    bool failed; /* a wait, since bcuda_settle */
};

static struct cuda_driver driver;
static char *absence; /* why there is no driver; NULL = there is one */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct bcuda *kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

/* The library is never closed: the server may have it open too. */
static void open_driver(void)
{
    void *library = dlopen(CUDA_DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *missing = library ? cuda_driver_fill(&driver, library) : dlerror();
    absence = missing ? strdup(missing) : NULL;
    int result = absence ? 0 : driver.init(0);
    const char *name = NULL;
    if (result)
        absence =
            strdup(driver.error_name(result, &name) == CUDA_SUCCESS && name ? name : "cuInit");
}

static TRITONSERVER_Error *checked(const struct bcuda *c, int result, const char *what)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return NULL;
    if (driver.error_name(result, &name) != CUDA_SUCCESS || !name)
        name = "unknown";
    return berr_new(TRITONSERVER_ERROR_INTERNAL, "GPU %d: %s failed: %s (%d)", (int)c->device, what,
                    name, result);
}

void bcuda_leave(void)
{
    struct cuda_context *was;
    (void)driver.context_pop(&was);
}

static TRITONSERVER_Error *make_stream(struct bcuda *c)
{
    int least = 0, greatest = 0;
    if (c->priority == BCUDA_USUAL)
        return checked(c, driver.stream_new(&c->stream, CUDA_STREAM_NON_BLOCKING),
                       "cuStreamCreate");
    TRITONSERVER_Error *err =
        checked(c, driver.stream_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
    return err ? err
               : checked(c,
                         driver.stream_new_at(&c->stream, CUDA_STREAM_NON_BLOCKING,
                                              c->priority == BCUDA_FIRST ? greatest : least),
                         "cuStreamCreateWithPriority");
}

/* With a stream: one that failed is not used again. */
TRITONSERVER_Error *bcuda_enter(struct bcuda *c)
{
    TRITONSERVER_Error *err = checked(c, driver.context_push(c->context), "cuCtxPushCurrent");
    if (err || c->stream)
        return err;
    err = make_stream(c);
    if (err) {
        c->stream = NULL;
        bcuda_leave();
    }
    return err;
}

static TRITONSERVER_Error *find_manager(TRITONBACKEND_Model *model, struct bcuda *c)
{
    TRITONBACKEND_Backend *backend;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelBackend(model, &backend);
    return err ? err : TRITONBACKEND_BackendMemoryManager(backend, &c->manager);
}

static TRITONSERVER_Error *open_device(struct bcuda *c)
{
    TRITONSERVER_Error *err = checked(c, driver.device_get(&c->handle, c->device), "cuDeviceGet");
    if (!err)
        err = checked(c, driver.context_retain(&c->context, c->handle), "cuDevicePrimaryCtxRetain");
    if (!err)
        err = bcuda_enter(c);
    if (!err)
        bcuda_leave();
    return err;
}

static struct bcuda *take_kept(int32_t device, enum bcuda_priority priority)
{
    pthread_mutex_lock(&kept_lock);
    struct bcuda **at = &kept;
    while (*at && ((*at)->device != device || (*at)->priority != priority))
        at = &(*at)->next;
    struct bcuda *c = *at;
    if (c)
        *at = c->next;
    pthread_mutex_unlock(&kept_lock);
    return c;
}

/* As bcuda_enter, to give something back: what cannot be entered keeps it. */
static bool enter_to_free(struct bcuda *c)
{
    TRITONSERVER_Error *err = bcuda_enter(c);
    berr_drop(err);
    return !err;
}

static void bcuda_destroy(struct bcuda *c)
{
    if (c->stream && enter_to_free(c)) {
        (void)driver.stream_free(c->stream);
        bcuda_leave();
    }
    if (c->context)
        (void)driver.context_release(c->handle);
    free(c);
}

static TRITONSERVER_Error *bcuda_make(TRITONBACKEND_Model *model, int32_t device,
                                      enum bcuda_priority priority, struct bcuda **ret)
{
    struct bcuda *c = calloc(1, sizeof *c);
    if (!c)
        return berr_no_memory();
    c->device = device;
    c->priority = priority;
    TRITONSERVER_Error *err = find_manager(model, c);
    if (!err)
        err = open_device(c);
    if (err)
        bcuda_destroy(c);
    else
        *ret = c;
    return err;
}

TRITONSERVER_Error *bcuda_open_on(TRITONBACKEND_Model *model, int32_t device,
                                  enum bcuda_priority priority, struct bcuda **ret)
{
    pthread_once(&once, open_driver);
    if (absence)
        return berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "CUDA's driver cannot be used: %s",
                        absence);
    struct bcuda *c = take_kept(device, priority);
    if (!c)
        return bcuda_make(model, device, priority, ret);
    TRITONSERVER_Error *err = find_manager(model, c); /* it may have been another server's */
    if (err)
        bcuda_close(c);
    else
        *ret = c;
    return err;
}

TRITONSERVER_Error *bcuda_open(TRITONBACKEND_ModelInstance *instance, struct bcuda **ret)
{
    TRITONBACKEND_Model *model;
    int32_t device = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!err)
        err = TRITONBACKEND_ModelInstanceDeviceId(instance, &device);
    return err ? err : bcuda_open_on(model, device, BCUDA_USUAL, ret);
}

static void end_sleep(struct bcuda *c)
{
    if (c->event && enter_to_free(c)) {
        (void)driver.event_free(c->event);
        bcuda_leave();
    }
    c->event = NULL;
}

void bcuda_close(struct bcuda *c)
{
    if (!c)
        return;
    c->failed = false;
    end_sleep(c);
    pthread_mutex_lock(&kept_lock);
    c->next = kept;
    kept = c;
    pthread_mutex_unlock(&kept_lock);
}

void bcuda_end(void)
{
    pthread_mutex_lock(&kept_lock);
    struct bcuda *all = kept;
    kept = NULL;
    pthread_mutex_unlock(&kept_lock);
    while (all) {
        struct bcuda *c = all;
        all = c->next;
        bcuda_destroy(c);
    }
}

int32_t bcuda_device(const struct bcuda *c)
{
    return c->device;
}

TRITONSERVER_Error *bcuda_capability(const struct bcuda *c, int *ret_major, int *ret_minor)
{
    TRITONSERVER_Error *err =
        checked(c, driver.device_attribute(ret_major, CUDA_ATTRIBUTE_CAPABILITY_MAJOR, c->handle),
                "cuDeviceGetAttribute");
    return err ? err
               : checked(
                     c,
                     driver.device_attribute(ret_minor, CUDA_ATTRIBUTE_CAPABILITY_MINOR, c->handle),
                     "cuDeviceGetAttribute");
}

TRITONSERVER_Error *bcuda_alloc(struct bcuda *c, uint64_t size, void **ret)
{
    cuda_address at = 0;
    TRITONSERVER_Error *err = bcuda_enter(c);
    if (err)
        return err;
    err = checked(c, driver.memory_alloc(&at, size ? size : 1), "cuMemAlloc");
    bcuda_leave();
    *ret = (void *)(uintptr_t)at;
    return err;
}

void bcuda_free(struct bcuda *c, void *memory)
{
    TRITONSERVER_Error *err = memory ? bcuda_enter(c) : NULL;
    if (memory && !err) {
        (void)driver.memory_free((uintptr_t)memory);
        bcuda_leave();
    }
    berr_drop(err);
}

TRITONSERVER_Error *bcuda_stream(struct bcuda *c, void **ret)
{
    TRITONSERVER_Error *err = bcuda_enter(c);
    if (err)
        return err;
    bcuda_leave();
    *ret = c->stream;
    return NULL;
}

TRITONSERVER_Error *bcuda_copy(struct bcuda *c, void *to, const void *from, uint64_t size)
{
    TRITONSERVER_Error *err = bcuda_enter(c);
    if (err)
        return err;
    err = checked(c, driver.copy((uintptr_t)to, (uintptr_t)from, size, c->stream), "cuMemcpyAsync");
    bcuda_leave();
    return err;
}

TRITONSERVER_Error *bcuda_put(struct bcuda *c, void *to, const void *from, uint64_t size)
{
    if (size && c)
        return bcuda_copy(c, to, from, size);
    if (size)
        memcpy(to, from, size);
    return NULL;
}

TRITONSERVER_Error *bcuda_clear(struct bcuda *c, void *to, uint64_t size)
{
    TRITONSERVER_Error *err = bcuda_enter(c);
    if (err)
        return err;
    err = checked(c, driver.fill((uintptr_t)to, 0, size, c->stream), "cuMemsetD8Async");
    bcuda_leave();
    return err;
}

TRITONSERVER_Error *bcuda_stage(struct bcuda *c, uint64_t size, void **ret)
{
    struct staged *s = calloc(1, sizeof *s);
    if (!s)
        return berr_no_memory();
    TRITONSERVER_Error *err = TRITONBACKEND_MemoryManagerAllocate(
        c->manager, &s->memory, TRITONSERVER_MEMORY_GPU, c->device, size);
    if (err) {
        free(s);
        return err;
    }
    s->size = size;
    s->next = c->staged;
    c->staged = s;
    *ret = s->memory;
    return NULL;
}

TRITONSERVER_Error *bcuda_pass(struct bcuda *c, void *to, const void *from, uint64_t size)
{
    void *between = NULL;
    for (struct staged *s = c->staged; s && !between; s = s->next)
        between = s->size >= size ? s->memory : NULL;
    TRITONSERVER_Error *err = between ? NULL : bcuda_stage(c, size, &between);
    if (!err)
        err = bcuda_copy(c, between, from, size);
    return err ? err : bcuda_copy(c, to, between, size);
}

TRITONSERVER_Error *bcuda_record(struct bcuda *c)
{
    return checked(c, driver.record_begin(c->stream, CUDA_CAPTURE_THREAD), "cuStreamBeginCapture");
}

TRITONSERVER_Error *bcuda_recorded(struct bcuda *c, struct cuda_graph_exec **ret)
{
    struct cuda_graph *graph = NULL;
    struct cuda_graph_exec *ready = NULL;
    TRITONSERVER_Error *err =
        checked(c, driver.record_end(c->stream, &graph), "cuStreamEndCapture");
    if (!err)
        err = checked(c, driver.graph_ready(&ready, graph, 0), "cuGraphInstantiate");
    if (graph)
        (void)driver.graph_free(graph);
    if (!err)
        *ret = ready;
    return err;
}

TRITONSERVER_Error *bcuda_replay(struct bcuda *c, struct cuda_graph_exec *graph)
{
    TRITONSERVER_Error *err = bcuda_enter(c);
    if (err)
        return err;
    err = checked(c, driver.graph_launch(graph, c->stream), "cuGraphLaunch");
    bcuda_leave();
    return err;
}

void bcuda_forget(struct bcuda *c, struct cuda_graph_exec *graph)
{
    if (graph && enter_to_free(c)) {
        (void)driver.graph_exec_free(graph);
        bcuda_leave();
    }
}

TRITONSERVER_Error *bcuda_sleep(struct bcuda *c)
{
    TRITONSERVER_Error *err = bcuda_enter(c);
    if (err)
        return err;
    err = checked(c, driver.event_new(&c->event, CUDA_EVENT_BLOCKING | CUDA_EVENT_NO_TIMING),
                  "cuEventCreate");
    bcuda_leave();
    return err;
}

static TRITONSERVER_Error *wait_for_stream(struct bcuda *c)
{
    if (!c->event)
        return checked(c, driver.stream_sync(c->stream), "cuStreamSynchronize");
    TRITONSERVER_Error *err = checked(c, driver.event_record(c->event, c->stream), "cuEventRecord");
    return err ? err : checked(c, driver.event_sync(c->event), "cuEventSynchronize");
}

/* As bcuda_enter, and a second time if it fails: what is queued shall not outlive its wait. */
static TRITONSERVER_Error *enter_to_wait(struct bcuda *c)
{
    TRITONSERVER_Error *err = bcuda_enter(c);
    if (!err)
        return NULL;
    berr_drop(err);
    return bcuda_enter(c);
}

TRITONSERVER_Error *bcuda_wait(struct bcuda *c)
{
    TRITONSERVER_Error *err = enter_to_wait(c);
    if (err)
        return err; /* what was staged may still be in use */
    err = wait_for_stream(c);
    if (err) {
        (void)driver.stream_free(c->stream);
        c->stream = NULL;
        c->failed = true;
    }
    bcuda_leave();
    while (c->staged) {
        struct staged *s = c->staged;
        c->staged = s->next;
        berr_drop(TRITONBACKEND_MemoryManagerFree(c->manager, s->memory, TRITONSERVER_MEMORY_GPU,
                                                  c->device));
        free(s);
    }
    return err;
}

TRITONSERVER_Error *bcuda_settle(struct bcuda *c)
{
    bool failed = c->failed;
    TRITONSERVER_Error *err = bcuda_wait(c);
    c->failed = false;
    if (!err && failed)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL,
                       "GPU %d failed while it worked on this batch: what it was asked for is lost",
                       (int)c->device);
    return err;
}
