#pragma once
/* Warm buffers for bodies and large tensors. A buffer of at least POOL_MAPPED_BYTES is mapped
 * memory and is kept for a second after its last use, because touching new pages costs more than
 * copying into them. Smaller buffers are heap memory. Every byte is charged to the budget while
 * a buffer is in use. Any thread. */
#include "base/buf.h"
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct budget_account;

#define POOL_MAPPED_BYTES ((size_t)32768)

/* pool_buf - get a buffer of at least `size` bytes (buf->size is `size`), aligned to 64, with
 * undefined contents.
 * errors  UNAVAILABLE if the budget is spent or there is no memory; the message has the
 *         requested size */
struct err *pool_buf(size_t size, struct buf **ret);

/* pool_buf_zeroed - as pool_buf, with every byte 0, for a caller that may not fill it before
 * somebody reads it. It clears only what earlier users may have written. */
struct err *pool_buf_zeroed(size_t size, struct buf **ret);

/* pool_buf_arriving - as pool_buf, for bytes that a peer announced: bytes that do not arrive are
 * not charged. A page is charged now, the rest by pool_arrived.
 * errors  those of pool_buf, also if there is no room now for its first 2 MiB */
struct err *pool_buf_arriving(size_t size, struct buf **ret);

/* pool_buf_of - as pool_buf_arriving, but a buffer shorter than BUDGET_STEP is charged to the
 * peer's account, so that a short message has room even if the budget is spent. A large buffer
 * has huge pages only if the peer's last large message arrived whole: a huge page may take
 * milliseconds, and peers whose messages never end would make others wait for each.
 * pool_whole - a message of so many bytes has arrived whole.
 * account  NULL = no account
 * arrived  so many bytes are there already: they are charged now */
struct err *pool_buf_of(struct budget_account *account, size_t size, size_t arrived,
                        struct buf **ret);
void pool_whole(struct budget_account *account, size_t bytes);

/* pool_room - charge the first `bytes` of the buffer if the budget has room for them, before
 * bytes are written that may have to be dropped. Returns how many bytes are charged, which may
 * be more or fewer. */
size_t pool_room(struct buf *b, size_t bytes);

/* pool_arrived - the first `bytes` have arrived: charge them. For buffers of the functions
 * above.
 * errors  UNAVAILABLE if the budget is spent: drop the buffer */
struct err *pool_arrived(struct buf *b, size_t bytes);

/* pool_trim - give mapped buffers that were not used since `before` back to the system. Returns
 * how many bytes stay warm. */
size_t pool_trim(time_ns before);

/* pool_trim_some - the same for about `most` bytes of touched memory, because unmapping small
 * pages takes 90 us per MiB, and a loop has other work.
 * most      a multiple of 2 MiB
 * ret_kept  bytes that are still mapped
 * returns   true if more could be given back: call it again soon */
bool pool_trim_some(time_ns before, size_t most, size_t *ret_kept);
