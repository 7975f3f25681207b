#pragma once
/* Compresses bytes with gzip, deflate (zlib) or zstd a slice at a time: the reverse of expand.h.
 * One thread at a time; the input is borrowed as long as the struct lives. */
#include "base/buf.h"
#include "base/err.h"
#include "codec/expand.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

struct shrink;

/* shrink_new - begin.
 * pieces  `count` of them, which are compressed one after another; the array is copied, the
 *         bytes are not
 * coding  GZIP, DEFLATE or ZSTD
 * before  bytes to leave free in front of the output
 * errors  UNAVAILABLE when the budget is spent, UNSUPPORTED if the system has no libzstd */
struct err *shrink_new(const struct iovec *pieces, size_t count, enum coding coding, size_t before,
                       struct shrink **ret);

/* shrink_step - compress about `most` more bytes of the input.
 * ret_done  the output is complete: call shrink_take
 * errors    UNAVAILABLE if the budget is spent; make no further step then */
struct err *shrink_step(struct shrink *x, size_t most, bool *ret_done);

/* shrink_take - the output, at ret_buf->data + before. Call it once. */
void shrink_take(struct shrink *x, struct buf **ret_buf, size_t *ret_len);

/* shrink_free - NULL is fine. */
void shrink_free(struct shrink *x);
