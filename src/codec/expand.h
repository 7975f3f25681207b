#pragma once
/* Decompresses gzip, deflate (zlib) or zstd data a slice at a time, so that the caller can do other
 * work in between. The output lies in pooled buffers that are charged as it grows; in the end it
 * is one buffer. One thread at a time. The input is borrowed as long as the struct lives. */
#include "base/buf.h"
#include "base/err.h"
#include "codec/coding.h"

#include <stdbool.h>
#include <stddef.h>

enum expand_state {
    EXPAND_MORE, /* not finished: call expand_step */
    EXPAND_DONE, /* finished: call expand_take */
    /* the data is not of that coding, or ends too early: expand_take gives the output before the
     * damage; of zstd only some of it, which depends on the steps */
    EXPAND_DAMAGED,
    EXPAND_TOO_LARGE, /* the output exceeds the limit */
    EXPAND_NO_ROOM,   /* the budget is spent: expand_error */
};

struct expand_spec {
    const void *data;
    size_t len;
    enum coding coding; /* GZIP, DEFLATE or ZSTD */
    bool either;        /* GZIP and DEFLATE: accept both; the data shows which one it is */
    size_t limit;       /* the most bytes of output; at least 1 */
    size_t before;      /* bytes to leave free in front of the output */
    size_t after;       /* bytes to leave free after the output */
};

struct expand;

/* expand_new - begin.
 * errors  UNAVAILABLE when the budget is spent, UNSUPPORTED if the system has no libzstd */
struct err *expand_new(const struct expand_spec *spec, struct expand **ret);

/* expand_step - decompress until about `most` more bytes were read or written. Only after MORE. */
enum expand_state expand_step(struct expand *x, size_t most);

/* expand_take - the output, after DONE or DAMAGED: at ret_buf->data + before. Call it once.
 * ret_buf  owned by the caller; has `after` bytes after the output */
void expand_take(struct expand *x, struct buf **ret_buf, size_t *ret_len);

/* expand_why - after DAMAGED: what is wrong with the data. */
const char *expand_why(const struct expand *x);

/* expand_error - after NO_ROOM: the error, owned by the caller. Call it once. */
struct err *expand_error(struct expand *x);

/* expand_free - NULL is fine. */
void expand_free(struct expand *x);
