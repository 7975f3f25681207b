#pragma once
/* Regions on GPUs, registered and unregistered on threads of their own: the driver may take a
 * second to begin, and closing memory waits for the GPU, for which no loop may wait. Orders of one
 * name are carried out in the order in which they were given; no other name waits for them. */
#include "base/err.h"
#include "base/map.h"
#include "os/mutex.h"
#include "regions/regions.h"

#include <stdint.h>

struct crew;

struct regions_orders {
    struct crew *crew; /* closes regions too */
    struct mutex lock; /* rank LEAF; guards what follows */
    struct mutex_cond all_done;
    struct map last; /* of each name of which something is ordered: its last order */
};

/* regions_order_init - nothing is ordered.
 * regions_order_wait - wait until nothing is; whoever ordered was told.
 * regions_order_fini - the same, and nobody has a region but the names. */
void regions_order_init(struct regions_orders *o);
void regions_order_wait(struct regions_orders *o);
void regions_order_fini(struct regions_orders *o);

/* regions_done_fn - an order was carried out, with the error of regions_register_cuda or
 * regions_unregister, which is the callee's. On that thread. */
typedef void regions_done_fn(void *owner, struct err *e);

/* regions_order_register, regions_order_unregister - have it done. Any thread; does not block.
 * name, handle  copied
 * done          called once, with `owner` */
void regions_order_register(struct regions *s, struct regions_name name,
                            const struct cuda_ipc_handle *handle, int64_t device,
                            uint64_t byte_size, regions_done_fn *done, void *owner);
void regions_order_unregister(struct regions *s, struct regions_name name, regions_done_fn *done,
                              void *owner);
