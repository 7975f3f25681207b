#include "http/http_body.h"

#include "base/budget.h"
#include "base/buf.h"
#include "codec/http1.h"
#include "http/http_exchange.h"
#include "os/pool.h"

#include <string.h>

#define ALIGN        64u
#define FIRST_CHUNKS ((size_t)16384)
#define GROWTH       16u
/* up to this size; then by doubling, because address space is limited */
#define GROWTH_UP_TO   ((size_t)64 << 20)
#define MAX_BODY_BYTES (SIZE_MAX / 4)

size_t http_body_offset(const struct http1_head *h)
{
    size_t json = 0;
    for (const char *s = h->tensor_header.text; h->tensor_header.given && *s >= '0' && *s <= '9';
         s++)
        json = (json * 10 + (size_t)(*s - '0')) % ALIGN;
    return (ALIGN - json) % ALIGN;
}

struct err *http_body_begin(struct http_body *b, struct budget_account *account,
                            const struct http1_head *h)
{
    uint64_t size = h->chunked ? FIRST_CHUNKS : h->content_length;
    if (size > MAX_BODY_BYTES)
        return err_new(STATUS_UNAVAILABLE, "no room for a body of %llu bytes",
                       (unsigned long long)size);
    if (!h->chunked && size > budget_limit())
        return budget_busy((size_t)size, "no room for a body of %llu bytes",
                           (unsigned long long)size);
    b->at = http_body_offset(h);
    b->len = 0;
    b->left = h->content_length;
    return pool_buf_of(account, b->at + (size_t)size + HTTP_BODY_PADDING, b->at, &b->buf);
}

char *http_body_place(const struct http_body *b)
{
    return (char *)b->buf->data + b->at + b->len;
}

void http_body_arrived(struct http_body *b, size_t len)
{
    b->len += len;
    b->left -= len;
    b->error = pool_arrived(b->buf, b->at + b->len);
}

size_t http_body_take(struct http_body *b, const char *bytes, size_t len)
{
    if (len > b->left)
        len = (size_t)b->left;
    memcpy(http_body_place(b), bytes, len);
    http_body_arrived(b, len);
    return len;
}

char *http_body_text(const struct http_body *b)
{
    return b->len ? (char *)b->buf->data + b->at : NULL;
}

/* Grows by much: unused memory costs nothing, and a copy delays everybody else on the loop. */
static size_t next_cap(size_t cap, uint64_t max)
{
    size_t times = cap * GROWTH <= GROWTH_UP_TO ? GROWTH : 2;
    return cap < max / times ? cap * times : (size_t)max;
}

static struct err *http_body_grow(struct http_body *b, size_t len)
{
    size_t cap = b->buf->size - b->at - HTTP_BODY_PADDING;
    while (cap - b->len < len)
        cap = next_cap(cap, b->max);
    struct buf *larger;
    /* without an account: who gives no length gets no huge pages */
    struct err *e = pool_buf_of(NULL, b->at + cap + HTTP_BODY_PADDING, b->at + b->len, &larger);
    if (e)
        return e;
    memcpy(larger->data + b->at, b->buf->data + b->at, b->len);
    buf_unref(b->buf);
    b->buf = larger;
    return NULL;
}

/* Makes charged room for len more bytes of a body without a length. */
static struct err *http_body_make_room(struct http_body *b, size_t len)
{
    size_t end = b->at + b->len + len;
    struct err *e = end + HTTP_BODY_PADDING > b->buf->size ? http_body_grow(b, len) : NULL;
    return e ? e : pool_arrived(b->buf, end);
}

bool http_body_piece(struct http_body *b, const char *bytes, size_t len)
{
    if (len > b->max - b->len)
        b->error = err_new(STATUS_INVALID_ARG,
                           "request body exceeds the maximum allowed input size of %llu bytes. Use "
                           "--http-max-input-size to increase the limit.",
                           (unsigned long long)b->max);
    else
        b->error = http_body_make_room(b, len);
    if (b->error)
        return false;
    memcpy(b->buf->data + b->at + b->len, bytes, len);
    b->len += len;
    return true;
}

void http_body_end(struct http_body *b)
{
    buf_unref(b->buf);
    b->buf = NULL;
    b->len = 0;
}
