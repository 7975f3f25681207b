#pragma once
/* An answer as a response cache keeps it: one run of bytes, the outputs in order, then the
 * parameters. What comes back from a cache is checked: it may lie outside of the process. */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct response;

/* cache_pack_size - how many bytes the response takes; 0 = it cannot be kept: an output has no
 * buffer, or lies in memory that cannot be read here. */
uint64_t cache_pack_size(const struct response *r);

/* cache_pack_write - put it at `to`, which has room for cache_pack_size(r). */
void cache_pack_write(const struct response *r, uint8_t *to);

/* cache_pack_read - add outputs with their bytes, and parameters, to an empty response of the
 * request.
 * errors  INVALID_ARG for bytes that are no answer; what getting memory for the outputs says.
 *         The response is to be freed then */
struct err *cache_pack_read(const uint8_t *data, uint64_t size, struct response *r);
