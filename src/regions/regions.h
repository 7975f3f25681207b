#pragma once
/* The regions of shared memory that clients registered, of both kinds, by name: no two have the
 * same. Nothing is registered where the server does not allow it (--allow-client-shm). Words of
 * errors are the reference's. Any thread. */
#include "base/err.h"
#include "regions/region.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct regions;
struct regions_orders;

/* Names as they come: not ended by a zero byte. */
struct regions_name {
    const char *text;
    size_t len;
};

/* regions_new - without any.
 * allowed    clients may register some
 * max_bytes  the most that they may have together
 * regions_free - no request uses one. NULL is fine. */
struct regions *regions_new(bool allowed, uint64_t max_bytes);
void regions_free(struct regions *s);

/* regions_orders - what was ordered (regions/regions_order.h).
 * regions_stop - wait until all of it was done. From here on nothing is ordered. */
struct regions_orders *regions_orders(struct regions *s);
void regions_stop(struct regions *s);

/* regions_allowed - UNSUPPORTED where clients may not register nor unregister any. */
struct err *regions_allowed(const struct regions *s);

/* regions_register - as region_open.
 * key     without a zero byte in it, ends with one
 * errors  those of regions_allowed and region_open; ALREADY_EXISTS: the name is taken; INVALID_ARG:
 *         it is no name */
struct err *regions_register(struct regions *s, struct regions_name name, const char *key,
                             uint64_t offset, uint64_t byte_size);

/* regions_register_cuda - as region_open_cuda. May wait for the driver.
 * errors  those of regions_register, and of region_open_cuda */
struct err *regions_register_cuda(struct regions *s, struct regions_name name,
                                  const struct cuda_ipc_handle *handle, int64_t device,
                                  uint64_t byte_size);

/* regions_unregister - forget one of a kind; that there is none of the name is fine. An empty name:
 * all of the kind. Of CUDA's: may wait for the driver. Its memory was given back when this returns,
 * unless somebody has a reference still: a request whose answer is being written.
 * errors  those of regions_allowed; INTERNAL: requests that are not answered yet use it */
struct err *regions_unregister(struct regions *s, enum region_kind kind, struct regions_name name);

/* regions_list - one, or all of a kind with an empty name, by name.
 * ret     a reference to each, *ret_count: the caller's (regions_list_free)
 * errors  NOT_FOUND, also where the name is one of the other kind */
struct err *regions_list(struct regions *s, enum region_kind kind, struct regions_name name,
                         struct region ***ret, size_t *ret_count);
void regions_list_free(struct region **list, size_t count);

/* regions_use - a part of a region for a request: it is not unregistered until regions_unuse.
 * byte_size  above 0
 * ret        the region, a reference; what is asked for begins at *ret_data, as its base is
 * errors     NOT_FOUND; INVALID_ARG: the part is not within it, or it was cut short */
struct err *regions_use(struct regions *s, struct regions_name name, uint64_t offset,
                        uint64_t byte_size, struct region **ret, uint8_t **ret_data);

/* regions_unuse - the request is answered. The reference stays the caller's. */
void regions_unuse(struct region *r);
