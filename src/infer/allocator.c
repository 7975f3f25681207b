#include "infer/allocator.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "infer/buffer_attributes.h"
#include "infer/request.h"
#include "infer/response.h"

#include <inttypes.h>

#define ALLOCATOR_MAGIC 0x414c4c43u

/* The memory of one output; the struct lies in the arena of its response. */
struct allocated {
    struct buf buf;
    struct allocator *allocator;
    void *userp;
    struct buffer_attributes attributes;
};

struct allocator *allocator_new(TRITONSERVER_ResponseAllocatorAllocFn_t alloc,
                                TRITONSERVER_ResponseAllocatorReleaseFn_t release,
                                TRITONSERVER_ResponseAllocatorStartFn_t start)
{
    struct allocator *a = MEM_NEW(struct allocator);
    a->magic = ALLOCATOR_MAGIC;
    a->alloc = alloc;
    a->release = release;
    a->start = start;
    return a;
}

void allocator_free(struct allocator *a)
{
    if (!a)
        return;
    a->magic = 0;
    mem_free(a);
}

struct allocator *allocator_of(const void *handle)
{
    struct allocator *a = (struct allocator *)(uintptr_t)handle;
    return a && a->magic == ALLOCATOR_MAGIC ? a : NULL;
}

static TRITONSERVER_ResponseAllocator *allocator_handle(struct allocator *a)
{
    return (TRITONSERVER_ResponseAllocator *)a;
}

static void allocator_log_failure(struct err *e, const char *what)
{
    if (e)
        LOG_ERROR("response allocator: %s failed: %s", what, err_message(e));
    err_free(e);
}

void allocator_start(const struct request *r)
{
    struct allocator *a = r->allocator;
    if (a->start)
        allocator_log_failure((struct err *)a->start(allocator_handle(a), r->allocator_userp),
                              "start");
}

/* Gives the memory back to the application. The struct itself stays in its arena. */
static void allocator_give_back(struct buf *b)
{
    struct allocated *m = LIST_ITEM(b, struct allocated, buf);
    if (!b->data)
        return;
    allocator_log_failure(
        (struct err *)m->allocator->release(allocator_handle(m->allocator), b->data, m->userp,
                                            b->size, (TRITONSERVER_MemoryType)b->memory, b->device),
        "release");
}

struct err *allocator_output(struct response *r, struct tensor_output *output, uint64_t byte_size,
                             TRITONSERVER_MemoryType memory, int64_t device)
{
    struct allocator *a = r->request->allocator;
    void *userp = r->request->allocator_userp;
    void *data = NULL;
    void *buffer_userp = NULL;
    TRITONSERVER_MemoryType actual_memory = memory;
    int64_t actual_device = device;
    struct err *e =
        (struct err *)a->alloc(allocator_handle(a), output->name, byte_size, memory, device, userp,
                               &data, &buffer_userp, &actual_memory, &actual_device);
    if (e)
        return e;
    if (!data && byte_size)
        return err_new(STATUS_UNAVAILABLE,
                       "the response allocator gave no memory for the %" PRIu64
                       " bytes of output '%s'",
                       byte_size, output->name);
    struct allocated *m = arena_alloc(&r->arena, sizeof(*m));
    buf_init(&m->buf, data, byte_size, allocator_give_back);
    m->buf.memory = (enum buf_memory)actual_memory;
    m->buf.device = actual_device;
    m->allocator = a;
    m->userp = buffer_userp;
    buffer_attributes_init(&m->attributes, byte_size, m->buf.memory, actual_device);
    if ((unsigned)actual_memory > TRITONSERVER_MEMORY_GPU)
        e = err_new(STATUS_INVALID_ARG,
                    "the response allocator gave memory of type %d for output '%s': expected a "
                    "TRITONSERVER_MemoryType",
                    (int)actual_memory, output->name);
    if (!e && a->attributes)
        e = (struct err *)a->attributes(allocator_handle(a), output->name,
                                        (TRITONSERVER_BufferAttributes *)&m->attributes, userp,
                                        buffer_userp);
    if (e) {
        buf_unref(&m->buf);
        return e;
    }
    m->attributes.byte_size = byte_size;
    m->attributes.memory = m->buf.memory;
    m->attributes.device = actual_device;
    output->buf = &m->buf;
    output->data = data;
    output->byte_size = byte_size;
    output->memory = m->buf.memory;
    output->device = actual_device;
    return NULL;
}

struct err *allocator_query(const struct request *r, const char *name, size_t *byte_size,
                            TRITONSERVER_MemoryType *memory, int64_t *device)
{
    struct allocator *a = r->allocator;
    if (!a->query)
        return err_recode(request_error(r, "Output properties are not available"),
                          STATUS_UNAVAILABLE);
    return (struct err *)a->query(allocator_handle(a), r->allocator_userp, name, byte_size, memory,
                                  device);
}

static struct allocated *memory_of(const struct tensor_output *output)
{
    struct buf *b = output->buf;
    return b && b->free_fn == allocator_give_back ? LIST_ITEM(b, struct allocated, buf) : NULL;
}

void *allocator_userp(const struct tensor_output *output)
{
    const struct allocated *m = memory_of(output);
    return m ? m->userp : NULL;
}

struct buffer_attributes *allocator_attributes(const struct tensor_output *output)
{
    struct allocated *m = memory_of(output);
    return m ? &m->attributes : NULL;
}
