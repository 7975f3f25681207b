#pragma once
/* Bytes that came compressed with gzip or deflate (zlib), unpacked a slice at a time, so that
 * whoever does it can turn to something else in between. Output lies in pooled buffers that are
 * charged as it grows, a single one in the end. One thread at a time; what it works on is
 * borrowed for as long as it lives. */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum expand_coding {
    EXPAND_IDENTITY,
    EXPAND_GZIP,
    EXPAND_DEFLATE,
    EXPAND_UNKNOWN,
};

enum expand_state {
    EXPAND_MORE, /* go on: expand_step */
    EXPAND_DONE, /* whole: expand_take */
    /* bytes that are not of that coding, or end too early: expand_take gives what came before */
    EXPAND_DAMAGED,
    EXPAND_TOO_LARGE, /* over the limit */
    EXPAND_NO_ROOM,   /* over the budget: expand_error */
};

struct expand_spec {
    const void *data;
    size_t len;
    enum expand_coding coding; /* GZIP or DEFLATE */
    bool either;               /* the data say themselves which of them they are */
    size_t limit;              /* the most bytes of output; at least 1 */
    size_t before;             /* bytes left free in front of the output, */
    size_t after;              /* and behind it */
};

struct expand;

/* expand_coding_of - by its name, exactly as written; an empty one is IDENTITY. */
enum expand_coding expand_coding_of(const char *name, size_t len);

/* expand_new - begin.
 * errors  UNAVAILABLE when the budget is spent */
struct err *expand_new(const struct expand_spec *spec, struct expand **ret);

/* expand_step - unpack until about `most` more bytes were read or made. Not after another state
 * than MORE. */
enum expand_state expand_step(struct expand *x, size_t most);

/* expand_take - the output, after DONE or DAMAGED: at ret_buf->data + before. Once.
 * ret_buf  the caller's; has `after` bytes behind the output */
void expand_take(struct expand *x, struct buf **ret_buf, size_t *ret_len);

/* expand_why - of DAMAGED: what is wrong with the bytes. */
const char *expand_why(const struct expand *x);

/* expand_error - of NO_ROOM: the caller's. Once. */
struct err *expand_error(struct expand *x);

/* expand_free - NULL is fine. */
void expand_free(struct expand *x);
