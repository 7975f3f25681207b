/* Memory for the outputs of a backend in the child process. */
#include "base/mem.h"
#include "infer/tensor.h"
#include "os/shm.h"
#include "isolate/child/isolate_child_priv.h"
#include "isolate/wire/isolate_pool.h"

#include <inttypes.h>
#include <string.h>

/* The memory of one output; the allocator's userp points to it. */
struct output_memory {
    void *data;
    uint32_t slot; /* ISOLATE_SLOTS = the memory is on the heap */
    bool lent;
};

static struct isolate_child_outputs *of(TRITONSERVER_ResponseAllocator *allocator)
{
    return LIST_ITEM(allocator_of(allocator), struct isolate_child_outputs, allocator);
}

/* Takes back outputs that the parent no longer uses. Returns how many places are in use, by the
 * parent or the child. Lock held. */
static uint32_t isolate_child_outputs_collect(struct isolate_child_outputs *o)
{
    uint32_t most = 0;
    uint32_t used = 0;
    for (uint32_t i = 0; i < o->most; i++) {
        struct isolate_child_slot *s = &o->slots[i];
        /* Acquires the end of the parent's reads. */
        if (s->state == SLOT_LENT && __atomic_load_n(&o->shared[i], __ATOMIC_ACQUIRE)) {
            __atomic_store_n(&o->shared[i], 0, __ATOMIC_RELAXED);
            s->state = SLOT_FREE;
            isolate_pool_give(o->pool, s->offset, clock_now_ns());
        }
        if (s->state != SLOT_FREE) {
            used++;
            most = i + 1;
        }
    }
    o->most = most;
    return used;
}

/* Takes a slot and memory for it. Lock held. */
static bool isolate_child_outputs_take(struct isolate_child_outputs *o, uint64_t bytes,
                                       uint32_t *ret_slot)
{
    isolate_child_outputs_collect(o);
    uint32_t slot = 0;
    while (slot < ISOLATE_SLOTS && o->slots[slot].state != SLOT_FREE)
        slot++;
    if (slot == ISOLATE_SLOTS || !isolate_pool_take(o->pool, bytes, &o->slots[slot].offset))
        return false;
    o->slots[slot].state = SLOT_OURS;
    o->most = slot >= o->most ? slot + 1 : o->most;
    *ret_slot = slot;
    return true;
}

static struct err *allocate_shared(struct isolate_child_outputs *o, const char *name,
                                   uint64_t bytes, struct output_memory *place)
{
    mutex_lock(&o->lock);
    bool ok = isolate_child_outputs_take(o, bytes, &place->slot);
    if (ok)
        place->data = o->shared + ISOLATE_SLOTS + o->slots[place->slot].offset;
    mutex_unlock(&o->lock);
    if (ok) {
        isolate_child_watch_outputs(LIST_ITEM(o, struct isolate_child, outputs));
        return NULL;
    }
    return err_new(STATUS_UNAVAILABLE,
                   "output '%s': no room for %" PRIu64
                   " bytes in the memory that the isolated model shares with the "
                   "server, of which "
                   "%" PRIu64 " bytes are in use",
                   name, bytes, isolate_pool_used(o->pool));
}

static TRITONSERVER_Error *allocate(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    size_t bytes, TRITONSERVER_MemoryType memory, int64_t device,
                                    void *userp, void **buffer, void **buffer_userp,
                                    TRITONSERVER_MemoryType *actual_memory, int64_t *actual_device)
{
    (void)memory;
    (void)device;
    (void)userp;
    struct isolate_child_outputs *o = of(allocator);
    struct output_memory *place = MEM_NEW(struct output_memory);
    struct err *e = NULL;
    place->slot = ISOLATE_SLOTS;
    if (bytes > ISOLATE_INLINE_BYTES)
        e = allocate_shared(o, name, bytes, place);
    else
        place->data = mem_alloc_aligned(bytes ? bytes : 1, 64);
    if (e) {
        mem_free(place);
        return (TRITONSERVER_Error *)e;
    }
    /* The memory may contain another client's answer, and the backend may write less than it
     * asked for. */
    if (!LIST_ITEM(o, struct isolate_child, outputs)->backend->fills_outputs)
        memset(place->data, 0, bytes);
    *buffer = place->data;
    *buffer_userp = place;
    *actual_memory = TRITONSERVER_MEMORY_CPU;
    *actual_device = 0;
    return NULL;
}

static TRITONSERVER_Error *isolate_child_outputs_release(TRITONSERVER_ResponseAllocator *allocator,
                                                         void *buffer, void *buffer_userp,
                                                         size_t bytes,
                                                         TRITONSERVER_MemoryType memory,
                                                         int64_t device)
{
    (void)bytes;
    (void)memory;
    (void)device;
    struct isolate_child_outputs *o = of(allocator);
    struct output_memory *place = buffer_userp;
    if (place->slot == ISOLATE_SLOTS) {
        mem_free(buffer);
    } else if (!place->lent) {
        mutex_lock(&o->lock);
        o->slots[place->slot].state = SLOT_FREE;
        isolate_pool_give(o->pool, o->slots[place->slot].offset, clock_now_ns());
        mutex_unlock(&o->lock);
    }
    mem_free(place);
    return NULL;
}

static TRITONSERVER_Error *query(TRITONSERVER_ResponseAllocator *allocator, void *userp,
                                 const char *name, size_t *bytes, TRITONSERVER_MemoryType *memory,
                                 int64_t *device)
{
    (void)allocator;
    (void)userp;
    (void)name;
    (void)bytes;
    *memory = TRITONSERVER_MEMORY_CPU;
    *device = 0;
    return NULL;
}

void isolate_child_outputs_put(struct isolate_child_outputs *o, struct strbuf *sb,
                               const struct tensor_output *output)
{
    struct output_memory *place = allocator_userp(output);
    if (!place) {
        isolate_wire_put(sb, PLACE_NONE);
        return;
    }
    if (place->slot == ISOLATE_SLOTS) {
        isolate_wire_put(sb, PLACE_INLINE);
        isolate_wire_put_bytes(sb, output->data, output->byte_size);
        return;
    }
    mutex_lock(&o->lock);
    struct isolate_child_slot *s = &o->slots[place->slot];
    s->state = SLOT_LENT;
    isolate_wire_put(sb, PLACE_SHARED);
    isolate_wire_put(sb, place->slot);
    isolate_wire_put(sb, s->offset);
    isolate_wire_put(sb, output->byte_size);
    mutex_unlock(&o->lock);
    place->lent = true;
}

static void isolate_child_outputs_forget(void *owner, uint64_t offset, uint64_t bytes)
{
    const struct isolate_child_outputs *o = owner;
    shm_forget(o->fd, ISOLATE_SLOTS + offset, bytes);
}

void isolate_child_outputs_init(struct isolate_child_outputs *o, int fd, uint8_t *shared,
                                uint64_t bytes, uint64_t limit)
{
    mutex_init(&o->lock, MUTEX_RANK_POOL);
    o->fd = fd;
    o->shared = shared;
    o->pool = isolate_pool_new(bytes, limit, isolate_child_outputs_forget, o);
    struct allocator *made = allocator_new(allocate, isolate_child_outputs_release, NULL);
    made->query = query;
    o->allocator = *made;
    allocator_free(made);
}

void isolate_child_outputs_fini(struct isolate_child_outputs *o)
{
    isolate_pool_free(o->pool);
    mutex_fini(&o->lock);
}

bool isolate_child_outputs_trim(struct isolate_child_outputs *o)
{
    time_ns now = clock_now_ns();
    mutex_lock(&o->lock);
    uint32_t used = isolate_child_outputs_collect(o);
    mutex_unlock(&o->lock);
    return isolate_pool_trim(o->pool, now > ISOLATE_IDLE_NS ? now - ISOLATE_IDLE_NS : 0) || used;
}
