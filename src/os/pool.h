#pragma once
/* Warm buffers for bodies and large tensors. Sizes from POOL_MAPPED_BYTES on are mapped memory,
 * kept warm for a second after their last use since fresh pages cost more than the copy into
 * them; smaller ones are heap memory. Every byte is charged to the budget while a buffer is in
 * use. Any thread. */
#include "base/buf.h"
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct budget_account;

#define POOL_MAPPED_BYTES ((size_t)32768)

/* pool_buf - a buffer of at least `size` bytes (buf->size is `size`), aligned to 64, contents
 * undefined.
 * errors  UNAVAILABLE when the budget is spent or there is no memory; says how much was asked
 *         for */
struct err *pool_buf(size_t size, struct buf **ret);

/* pool_buf_zeroed - as pool_buf, every byte 0: for who may not fill it all before somebody else
 * reads it. Costs only what earlier users can have left behind. */
struct err *pool_buf_zeroed(size_t size, struct buf **ret);

/* pool_buf_arriving - as pool_buf, for bytes that a peer announced: what does not come is not
 * charged. Up to 2 MiB are charged now, the rest by pool_arrived. */
struct err *pool_buf_arriving(size_t size, struct buf **ret);

/* pool_buf_of - as pool_buf_arriving, for one of the peers: what is shorter than BUDGET_STEP is
 * held by its account, so that a short message has room where the budget is spent.
 * account  NULL = nobody's */
struct err *pool_buf_of(struct budget_account *account, size_t size, struct buf **ret);

/* pool_room - charge for the first `bytes` of the buffer where the budget has room for them,
 * before somebody writes there without knowing yet that he may keep it; returns how many bytes
 * are charged, which may be more or fewer. */
size_t pool_room(struct buf *b, size_t bytes);

/* pool_arrived - the first `bytes` of the buffer came in: charge them. The buffer is of one of
 * those above.
 * errors  UNAVAILABLE when the budget is spent: drop the buffer */
struct err *pool_arrived(struct buf *b, size_t bytes);

/* pool_trim - give mapped buffers back to the system that nobody used since `before`; returns
 * how many bytes stay warm. */
size_t pool_trim(time_ns before);

/* pool_trim_some - the same of at most about `most` bytes that have memory behind them:
 * unmapping small pages takes 90 us a MiB, and a loop has others to serve.
 * most      a multiple of 2 MiB
 * ret_kept  bytes that are mapped still
 * returns   whether some of them are to go, too: call again soon */
bool pool_trim_some(time_ns before, size_t most, size_t *ret_kept);
