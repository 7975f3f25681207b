#pragma once
/* Regions on GPUs, registered and unregistered on a thread of their own: the driver may take a
 * second to begin, and closing memory waits for the GPU, for which no loop may wait. Orders are
 * carried out in the order in which they were given. */
#include "base/err.h"
#include "regions/regions.h"

#include <stdint.h>

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
