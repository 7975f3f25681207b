#pragma once
/* Allocates places in a range of shared memory: a buddy allocator over offsets. Its data lies
 * only in this process, so that the other process cannot damage it. Freed places stay warm until
 * they are trimmed. Any thread. */
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define ISOLATE_POOL_PAGE 16384u

struct isolate_pool;

/* isolate_pool_forget_fn - gives the memory of a range of pages back to the system. */
typedef void isolate_pool_forget_fn(void *owner, uint64_t offset, uint64_t bytes);

/* isolate_pool_new - allocates in [0, bytes); at most `limit` bytes may be in use at once.
 * bytes   a multiple of the page, below 2^43. Places are powers of two, so `bytes` must be
 *         larger than `limit` */
struct isolate_pool *isolate_pool_new(uint64_t bytes, uint64_t limit,
                                      isolate_pool_forget_fn *forget, void *owner);
void isolate_pool_free(struct isolate_pool *p);

/* isolate_pool_take - take a place of at least `bytes` (above 0), which starts on a page. Waits for
 * a place whose memory just goes back to the system. Returns false if there is none. */
bool isolate_pool_take(struct isolate_pool *p, uint64_t bytes, uint64_t *ret_offset);

/* isolate_pool_give - give a place back. */
void isolate_pool_give(struct isolate_pool *p, uint64_t offset, time_ns now);

/* isolate_pool_trim - give memory back that was freed before the time `before`. It ends early if
 * somebody waits for a place. Returns true if other memory stays warm. */
bool isolate_pool_trim(struct isolate_pool *p, time_ns before);

/* isolate_pool_used - bytes in use. */
uint64_t isolate_pool_used(struct isolate_pool *p);
