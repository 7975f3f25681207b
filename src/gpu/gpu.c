#include "gpu/gpu.h"

#include "base/log.h"
#include "base/mem.h"
#include "gpu/gpu_priv.h"
#include "nereid/cuda_driver.h"
#include "os/dl.h"
#include "os/mutex.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Two capabilities are equal if they differ by less than this. */
#define SAME 0.01

/* Held while a server begins or ends, so that none begins while the last one gives back. */
static struct mutex servers_lock = MUTEX_INIT(MUTEX_RANK_REGISTRY);
static unsigned servers;

/* Guards what is written below, but for the contexts. What a look found is read without it, once
 * `looked` is set. */
static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);

/* Making a context takes long, and nobody waits for it who wants another GPU's. */
struct context {
    struct mutex lock; /* held while it is made; there is one where the list has the GPU */
    _Atomic(struct cuda_context *) made; /* NULL = not retained */
};

static struct {
    double least; /* compute capability */
    atomic_bool looked;
    struct dl *library;
    struct cuda_driver calls;
    char *absence;
    bool failed; /* the absence is a failure: a driver is there */
    bool told;   /* the log has the failure */
    struct gpu_list list;
    cuda_device handles[GPU_MAX];     /* by id */
    struct context contexts[GPU_MAX]; /* by id */
} gpu = {.least = GPU_CAPABILITY};

static const struct cuda_driver_symbol symbols[] = CUDA_DRIVER_SYMBOLS;

/* The text of a result, also before the driver is usable. */
static const char *text_of(int result, int (*call)(int result, const char **ret))
{
    const char *text = NULL;
    return call && call(result, &text) == CUDA_SUCCESS && text ? text : "unknown";
}

struct err *gpu_check(int result, const char *what, ...)
{
    if (result == CUDA_SUCCESS)
        return NULL;
    va_list args;
    va_start(args, what);
    struct err *e = err_vnew(
        result == CUDA_ERROR_OUT_OF_MEMORY ? STATUS_UNAVAILABLE : STATUS_INTERNAL, what, args);
    va_end(args);
    struct err *full = err_new(err_code(e), "%s: CUDA says %s (%d): %s", err_message(e),
                               text_of(result, gpu.calls.error_name), result,
                               text_of(result, gpu.calls.error_text));
    err_free(e);
    return full;
}

struct err *gpu_open_library(const char *name, const struct cuda_driver_symbol *wanted,
                             size_t count, void *to, struct dl **ret)
{
    struct err *e = dl_open(name, ret);
    for (size_t i = 0; !e && i < count; i++) {
        struct dl_function one = {wanted[i].name, (char *)to + wanted[i].offset};
        if (!dl_functions(*ret, &one, 1))
            e = err_new(STATUS_UNSUPPORTED, "%s has no %s: the driver is too old", name,
                        wanted[i].name);
    }
    return e;
}

static void format_uuid(const struct cuda_uuid *u, char *to, size_t room)
{
    uint8_t b[sizeof(u->bytes)];
    memcpy(b, u->bytes, sizeof(b));
    snprintf(to, room, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static struct err *describe_device(int32_t id, struct gpu_device *ret)
{
    const struct cuda_driver *c = &gpu.calls;
    cuda_device d = 0;
    struct cuda_uuid uuid;
    size_t bytes = 0;
    *ret = (struct gpu_device){.id = id};
    int rc = c->device_get(&d, id);
    gpu.handles[id] = d;
    if (!rc)
        rc = c->device_attribute(&ret->major, CUDA_ATTRIBUTE_CAPABILITY_MAJOR, d);
    if (!rc)
        rc = c->device_attribute(&ret->minor, CUDA_ATTRIBUTE_CAPABILITY_MINOR, d);
    if (!rc)
        rc = c->device_name(ret->name, sizeof(ret->name), d);
    if (!rc)
        rc = c->device_uuid(&uuid, d);
    if (!rc)
        rc = c->device_bytes(&bytes, d);
    if (rc)
        return gpu_check(rc, "describing GPU %" PRId32, id);
    format_uuid(&uuid, ret->uuid, sizeof(ret->uuid));
    ret->bytes = bytes;
    return NULL;
}

static bool suffices(const struct gpu_device *d)
{
    return d->major + d->minor / 10.0 - gpu.least > -SAME;
}

static struct err *list_devices(void)
{
    int count = 0;
    int rc = gpu.calls.init(0);
    if (!rc)
        rc = gpu.calls.version(&gpu.list.version);
    if (!rc)
        rc = gpu.calls.device_count(&count);
    struct err *e = gpu_check(rc, "starting the driver");
    for (int32_t i = 0; !e && i < count && i < GPU_MAX; i++) {
        struct gpu_device *d = &gpu.list.devices[i];
        e = describe_device(i, d);
        if (e)
            break;
        gpu.list.count++;
        if (suffices(d))
            gpu.list.usable[gpu.list.usable_count++] = i;
    }
    gpu.failed = e && rc != CUDA_ERROR_NO_DEVICE;
    if (!e && !count)
        e = err_new(STATUS_UNAVAILABLE, "the driver shows no device");
    for (size_t i = 0; !e && i < gpu.list.count; i++)
        mutex_init(&gpu.contexts[i].lock, MUTEX_RANK_LEAF);
    return e;
}

/* Under the lock. A machine of which a part does not answer counts as one without GPUs. Returns
 * true if there are GPUs. */
static bool gpu_look_once(void)
{
    gpu.list.least = gpu.least;
    struct err *e =
        gpu_open_library(CUDA_DRIVER_LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]),
                         &gpu.calls, &gpu.library);
    gpu.failed = gpu.library; /* until it shows what it has */
    if (!e)
        e = list_devices();
    if (!e)
        return true;
    gpu.absence = mem_strdup(err_message(e));
    gpu.list =
        (struct gpu_list){.absence = gpu.absence, .version = gpu.list.version, .least = gpu.least};
    err_free(e);
    return false;
}

void gpu_open(double least_capability)
{
    mutex_lock(&servers_lock);
    if (servers++ == 0) {
        mutex_lock(&lock);
        gpu.least = least_capability;
        mutex_unlock(&lock);
    }
    mutex_unlock(&servers_lock);
}

static void release_contexts(void)
{
    for (size_t i = 0; i < gpu.list.count; i++) {
        struct context *c = &gpu.contexts[i];
        if (atomic_exchange(&c->made, NULL))
            gpu.calls.context_release(gpu.handles[i]);
        mutex_fini(&c->lock);
    }
}

/* The library stays open: backends have it open too, and it does not unload well. */
static void gpu_forget(void)
{
    mutex_lock(&lock);
    release_contexts();
    mem_free(gpu.absence);
    gpu.absence = NULL;
    gpu.list = (struct gpu_list){0};
    gpu.library = NULL;
    gpu.failed = gpu.told = false;
    atomic_store(&gpu.looked, false);
    mutex_unlock(&lock);
}

void gpu_close(void)
{
    mutex_lock(&servers_lock);
    if (--servers == 0) {
        gpu_meter_close();
        gpu_memory_close();
        gpu_copy_close();
        gpu_forget();
    }
    mutex_unlock(&servers_lock);
}

const struct gpu_list *gpu_look(void)
{
    if (atomic_load_explicit(&gpu.looked, memory_order_acquire))
        return &gpu.list;
    mutex_lock(&lock);
    bool found = !gpu.looked && gpu_look_once();
    atomic_store_explicit(&gpu.looked, true, memory_order_release);
    mutex_unlock(&lock);
    if (found)
        gpu_meter_found(&gpu.list);
    return &gpu.list;
}

void gpu_tell_failure(void)
{
    mutex_lock(&lock);
    bool tell = gpu.failed && !gpu.told;
    gpu.told = gpu.told || tell;
    mutex_unlock(&lock);
    if (tell)
        LOG_WARN("no GPU is used: %s", gpu.absence);
}

const struct gpu_device *gpu_at(int64_t id)
{
    const struct gpu_list *l = gpu_look();
    return id >= 0 && (uint64_t)id < l->count ? &l->devices[id] : NULL;
}

const struct cuda_driver *gpu_driver(void)
{
    return gpu_look()->count ? &gpu.calls : NULL;
}

static struct err *context_of(int64_t id, struct cuda_context **ret)
{
    struct context *c = &gpu.contexts[id];
    *ret = atomic_load_explicit(&c->made, memory_order_acquire);
    if (*ret)
        return NULL;
    struct err *e = NULL;
    mutex_lock(&c->lock);
    *ret = c->made;
    if (!*ret) {
        e = gpu_check(gpu.calls.context_retain(ret, gpu.handles[id]), "opening GPU %" PRId64, id);
        if (!e)
            atomic_store_explicit(&c->made, *ret, memory_order_release);
    }
    mutex_unlock(&c->lock);
    return e;
}

struct err *gpu_enter(int64_t id)
{
    const struct gpu_list *l = gpu_look();
    if (!gpu_at(id))
        return err_new(STATUS_INVALID_ARG, "there is no GPU %" PRId64 "%s%s", id,
                       l->absence ? ": " : "", l->absence ? l->absence : "");
    struct cuda_context *context;
    struct err *e = context_of(id, &context);
    return e ? e : gpu_check(gpu.calls.context_push(context), "entering GPU %" PRId64, id);
}

void gpu_leave(void)
{
    struct cuda_context *was;
    (void)gpu.calls.context_pop(&was);
}
