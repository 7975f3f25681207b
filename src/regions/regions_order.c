#include "regions/regions_order.h"

#include "base/mem.h"
#include "nereid/cuda_driver.h"
#include "os/crew.h"

#include <string.h>

struct order {
    struct crew_job job;
    struct order *next; /* of the name; guarded by the lock of all */
    struct regions *regions;
    struct regions_name name; /* a copy */
    struct cuda_ipc_handle handle;
    int64_t device;
    uint64_t byte_size;
    bool gone; /* it is to be unregistered */
    regions_done_fn *done;
    void *owner;
};

/* So many calls of the driver may hang before nothing is registered any more. */
static const struct crew_kind waiters = {.name = "region", .most = 8, .idle = TIME_S(10)};

void regions_order_init(struct regions_orders *o)
{
    *o = (struct regions_orders){.crew = crew_new(&waiters, NULL)};
    mutex_init(&o->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&o->all_done);
}

void regions_order_wait(struct regions_orders *o)
{
    mutex_lock(&o->lock);
    while (o->last.count)
        mutex_cond_wait(&o->all_done, &o->lock);
    mutex_unlock(&o->lock);
}

void regions_order_fini(struct regions_orders *o)
{
    crew_free(o->crew);
    map_fini(&o->last);
    mutex_cond_fini(&o->all_done);
    mutex_fini(&o->lock);
}

static void regions_order_obey(struct order *o)
{
    struct err *e =
        o->gone ? regions_unregister(o->regions, REGION_CUDA, o->name)
                : regions_register_cuda(o->regions, o->name, &o->handle, o->device, o->byte_size);
    o->done(o->owner, e);
}

/* It was carried out. Returns the next of its name. */
static struct order *order_end(struct order *o)
{
    struct regions_orders *all = regions_orders(o->regions);
    mutex_lock(&all->lock);
    struct order *next = o->next;
    if (!next)
        map_remove(&all->last, o->name.text, o->name.len);
    if (!all->last.count)
        mutex_cond_broadcast(&all->all_done);
    mutex_unlock(&all->lock);
    mem_free((char *)(uintptr_t)o->name.text);
    mem_free(o);
    return next;
}

static void carry_out(struct crew_job *job, void *own)
{
    (void)own;
    for (struct order *o = LIST_ITEM(job, struct order, job); o; o = order_end(o))
        regions_order_obey(o);
}

/* Whoever carries out an earlier one of its name does this one too. */
static void regions_order_give(struct order *o)
{
    struct regions_orders *all = regions_orders(o->regions);
    mutex_lock(&all->lock);
    struct order *earlier = map_put(&all->last, o->name.text, o->name.len, o);
    if (earlier)
        earlier->next = o;
    mutex_unlock(&all->lock);
    if (!earlier)
        crew_do(all->crew, &o->job);
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
    regions_order_give(o);
}

void regions_order_unregister(struct regions *s, struct regions_name name, regions_done_fn *done,
                              void *owner)
{
    struct order *o = order_new(s, name, done, owner);
    o->gone = true;
    regions_order_give(o);
}
