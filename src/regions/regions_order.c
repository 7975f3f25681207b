#include "regions/regions_order.h"

#include "base/mem.h"
#include "nereid/cuda_driver.h"
#include "os/crew.h"

#include <string.h>

struct order {
    struct crew_job job;
    struct regions *regions;
    struct regions_name name; /* a copy */
    struct cuda_ipc_handle handle;
    int64_t device;
    uint64_t byte_size;
    bool gone; /* it is to be unregistered */
    regions_done_fn *done;
    void *owner;
};

static void carry_out(struct crew_job *job, void *own)
{
    (void)own;
    struct order *o = LIST_ITEM(job, struct order, job);
    struct err *e =
        o->gone ? regions_unregister(o->regions, REGION_CUDA, o->name)
                : regions_register_cuda(o->regions, o->name, &o->handle, o->device, o->byte_size);
    o->done(o->owner, e);
    mem_free((char *)(uintptr_t)o->name.text);
    mem_free(o);
}

static struct order *order_new(struct regions *s, struct regions_name name, regions_done_fn *done,
                               void *owner)
{
    struct order *o = MEM_NEW(struct order);
    o->job.run = carry_out;
    o->regions = s;
    o->name = (struct regions_name){mem_strndup(name.len ? name.text : "", name.len), name.len};
    o->done = done;
    o->owner = owner;
    return o;
}

void regions_order_register(struct regions *s, struct regions_name name,
                            const struct cuda_ipc_handle *handle, int64_t device,
                            uint64_t byte_size, regions_done_fn *done, void *owner)
{
    struct order *o = order_new(s, name, done, owner);
    o->handle = *handle;
    o->device = device;
    o->byte_size = byte_size;
    regions_run(s, &o->job);
}

void regions_order_unregister(struct regions *s, struct regions_name name, regions_done_fn *done,
                              void *owner)
{
    struct order *o = order_new(s, name, done, owner);
    o->gone = true;
    regions_run(s, &o->job);
}
