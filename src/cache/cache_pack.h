#pragma once
/* The format in which a response cache stores an answer: one run of bytes with the outputs in
 * order, then the parameters. Bytes that come back from a cache are checked, because the cache
 * may lie outside the process. */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct response;

/* cache_pack_size - how many bytes the response takes; 0 = it cannot be stored, because an
 * output has no buffer or lies in memory that cannot be read here. */
uint64_t cache_pack_size(const struct response *r);

/* cache_pack_write - write it to `to`, which has room for cache_pack_size(r). */
void cache_pack_write(const struct response *r, uint8_t *to);

/* cache_pack_read - add the stored outputs and parameters to an empty response.
 * errors  INVALID_ARG for bytes that are not a stored answer; those of allocating the outputs.
 *         The caller then frees the response */
struct err *cache_pack_read(const uint8_t *data, uint64_t size, struct response *r);
