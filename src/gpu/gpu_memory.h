#pragma once
/* Memory of GPUs and pinned memory, from pools: what is freed is kept for the next that asks, and
 * no pool hands out more than its limit. Any thread; no lock may be held that is a leaf. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

/* Sizes of the pools where nobody says otherwise: the reference's. */
#define GPU_MEMORY_DEVICE_BYTES ((uint64_t)64 << 20)
#define GPU_MEMORY_PINNED_BYTES ((uint64_t)256 << 20)

/* gpu_memory_limit - the size of a GPU's pool, before anything is taken of it; 0 = none.
 * gpu_memory_limit_pinned - of the pool of pinned memory. */
void gpu_memory_limit(int64_t id, uint64_t bytes);
void gpu_memory_limit_pinned(uint64_t bytes);

/* gpu_memory_limit_of - the size of a GPU's pool; 0 if there can be no such GPU.
 * gpu_memory_pinned_limit - of the pool of pinned memory. */
uint64_t gpu_memory_limit_of(int64_t id);
uint64_t gpu_memory_pinned_limit(void);

/* gpu_memory_limit_loads - the share of a GPU's memory, whoever uses it, above which no model is
 *                          loaded there.
 * gpu_memory_allows - true if not more is in use now. */
void gpu_memory_limit_loads(int64_t id, double fraction);
bool gpu_memory_allows(int64_t id);

/* gpu_memory_alloc - memory of a GPU; 0 bytes are one byte.
 * errors  UNSUPPORTED if there is no such GPU; UNAVAILABLE if its pool, or its memory, is spent;
 *         those of gpu_check */
struct err *gpu_memory_alloc(int64_t id, uint64_t bytes, void **ret);

/* gpu_memory_free - give it back. The caller has waited for whatever used it.
 * errors  INVALID_ARG for what gpu_memory_alloc did not return, or of another GPU */
struct err *gpu_memory_free(int64_t id, void *p);

/* gpu_memory_buf - the same as a counted buffer. */
struct err *gpu_memory_buf(int64_t id, uint64_t bytes, struct buf **ret);

/* gpu_memory_pinned - pinned memory, or NULL where the pool is spent or there is no GPU: then
 * ordinary memory has to do, which is slower to copy.
 * gpu_memory_unpin - give it back. */
void *gpu_memory_pinned(uint64_t bytes);
void gpu_memory_unpin(void *p);

/* gpu_memory_pinned_pool - the size of the pool of pinned memory, and what is in use of it. The
 * size is 0 where there is no pool because nobody asked for pinned memory, or there is no GPU. */
void gpu_memory_pinned_pool(uint64_t *ret_bytes, uint64_t *ret_used);
