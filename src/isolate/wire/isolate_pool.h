#pragma once
/* Places in a range of shared memory: a buddy allocator over offsets. What it knows lies in this
 * process alone, so that the other one cannot spoil it. Freed places stay warm until they are
 * trimmed. Any thread. */
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define ISOLATE_POOL_PAGE 16384u

struct isolate_pool;

/* isolate_pool_forget_fn - the memory of a range of pages may go back to the system. */
typedef void isolate_pool_forget_fn(void *owner, uint64_t offset, uint64_t bytes);

/* isolate_pool_new - over [0, bytes), of which at most `limit` may be taken at once.
 * bytes   a multiple of the page below 2^43; places are powers of two, so more than limit is
 *         needed to fill it */
struct isolate_pool *isolate_pool_new(uint64_t bytes, uint64_t limit,
                                      isolate_pool_forget_fn *forget, void *owner);
void isolate_pool_free(struct isolate_pool *p);

/* isolate_pool_take - a place of at least `bytes`, above 0, that starts on a page; false when
 * there is none. */
bool isolate_pool_take(struct isolate_pool *p, uint64_t bytes, uint64_t *ret_offset);

/* isolate_pool_give - give a place back. */
void isolate_pool_give(struct isolate_pool *p, uint64_t offset, time_ns now);

/* isolate_pool_trim - forget what was given back before `before`; returns whether something else
 * stays warm. */
bool isolate_pool_trim(struct isolate_pool *p, time_ns before);

/* isolate_pool_used - bytes that are taken. */
uint64_t isolate_pool_used(struct isolate_pool *p);
