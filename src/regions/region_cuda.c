#include "regions/region_cuda.h"

#include "base/log.h"
#include "gpu/gpu.h"
#include "nereid/cuda_driver.h"

/* The driver's words are for who runs the server. */
static void say_driver(struct err *e)
{
    if (e)
        LOG_WARN("%s", err_message(e));
    err_free(e);
}

static struct err *no_such_memory(void)
{
    return err_new(STATUS_INVALID_ARG, "failed to register shared memory region: invalid args");
}

/* False where there is no such GPU, or it cannot be used. */
static bool region_cuda_enter(const char *name, int64_t device)
{
    if (!gpu_at(device)) /* not worth a line: the client's mistake */
        return false;
    struct err *e = gpu_enter(device);
    bool entered = !e;
    say_driver(err_wrap(e, "shared memory region '%s'", name));
    return entered;
}

static void close_there(const char *name, cuda_address at)
{
    say_driver(gpu_check(gpu_driver()->ipc_close(at), "closing shared memory region '%s'", name));
}

/* Whether so many bytes from an address on lie within what was allocated there. */
static bool is_within(const char *name, cuda_address at, uint64_t byte_size)
{
    cuda_address start = 0;
    size_t bytes = 0;
    struct err *e = gpu_check(gpu_driver()->memory_range(&start, &bytes, at),
                              "measuring shared memory region '%s'", name);
    bool known = !e;
    say_driver(e);
    return known && at >= start && at - start <= bytes && byte_size <= bytes - (at - start);
}

/* In the context of the GPU. */
static struct err *open_there(const char *name, const struct cuda_ipc_handle *handle,
                              uint64_t byte_size, cuda_address *ret)
{
    struct err *e = gpu_check(gpu_driver()->ipc_open(ret, *handle, CUDA_IPC_LAZY_PEER_ACCESS),
                              "opening shared memory region '%s'", name);
    if (e) {
        say_driver(e);
        return no_such_memory();
    }
    if (is_within(name, *ret, byte_size))
        return NULL;
    close_there(name, *ret);
    return err_new(STATUS_INVALID_ARG, "failed to register shared memory region '%s': invalid args",
                   name);
}

struct err *region_cuda_open(const char *name, const struct cuda_ipc_handle *handle, int64_t device,
                             uint64_t byte_size, uint8_t **ret)
{
    if (!region_cuda_enter(name, device))
        return no_such_memory();
    cuda_address at = 0;
    struct err *e = open_there(name, handle, byte_size, &at);
    gpu_leave();
    if (!e)
        *ret = (uint8_t *)(uintptr_t)at;
    return e;
}

void region_cuda_close(const char *name, int64_t device, uint8_t *base)
{
    if (!region_cuda_enter(name, device))
        return;
    close_there(name, (uintptr_t)base);
    gpu_leave();
}
