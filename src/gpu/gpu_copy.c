#include "gpu/gpu_copy.h"

#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/gpu_priv.h"
#include "nereid/cuda_driver.h"
#include "os/mutex.h"

#include <inttypes.h>
#include <string.h>

struct idle_stream {
    struct idle_stream *next;
    struct cuda_stream *stream;
};

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards the lists */
static struct idle_stream *idle[GPU_MAX];

static struct cuda_stream *take_idle(int64_t id)
{
    mutex_lock(&lock);
    struct idle_stream *s = idle[id];
    if (s)
        idle[id] = s->next;
    mutex_unlock(&lock);
    struct cuda_stream *stream = s ? s->stream : NULL;
    mem_free(s);
    return stream;
}

static void keep(int64_t id, struct cuda_stream *stream)
{
    struct idle_stream *s = MEM_NEW(struct idle_stream);
    s->stream = stream;
    mutex_lock(&lock);
    s->next = idle[id];
    idle[id] = s;
    mutex_unlock(&lock);
}

/* In the context of the GPU: a copy, or zeros where `from` is NULL. Whatever was queued has ended
 * on return, also with an error. */
static struct err *write_on(int64_t id, void *to, const void *from, uint64_t bytes)
{
    const struct cuda_driver *c = gpu_driver();
    struct cuda_stream *s = take_idle(id);
    int rc = s ? CUDA_SUCCESS : c->stream_new(&s, CUDA_STREAM_NON_BLOCKING);
    if (rc)
        return gpu_check(rc, "making a stream of GPU %" PRId64, id);
    rc = from ? c->copy((uintptr_t)to, (uintptr_t)from, bytes, s)
              : c->fill((uintptr_t)to, 0, bytes, s);
    int waited = c->stream_sync(s);
    if (waited)
        (void)c->stream_free(s);
    else
        keep(id, s);
    return gpu_check(rc ? rc : waited, "%s %" PRIu64 " bytes by GPU %" PRId64,
                     from ? "copying" : "clearing", bytes, id);
}

static struct err *write_by(int64_t id, void *to, const void *from, uint64_t bytes)
{
    struct err *e = gpu_enter(id);
    if (e)
        return e;
    e = write_on(id, to, from, bytes);
    gpu_leave();
    return e;
}

struct err *gpu_copy(struct gpu_copy_place to, struct gpu_copy_place from, uint64_t bytes)
{
    if (!bytes)
        return NULL;
    if (to.memory != BUF_MEMORY_GPU && from.memory != BUF_MEMORY_GPU) {
        memcpy(to.data, from.data, bytes);
        return NULL;
    }
    return write_by(from.memory == BUF_MEMORY_GPU ? from.device : to.device, to.data, from.data,
                    bytes);
}

struct err *gpu_copy_zeros(int64_t id, void *to, uint64_t bytes)
{
    return bytes ? write_by(id, to, NULL, bytes) : NULL;
}

void gpu_copy_close(void)
{
    for (int64_t id = 0; id < GPU_MAX; id++)
        for (struct cuda_stream *s = take_idle(id); s; s = take_idle(id)) {
            struct err *e = gpu_enter(id);
            if (!e) {
                (void)gpu_driver()->stream_free(s);
                gpu_leave();
            }
            err_free(e);
        }
}
