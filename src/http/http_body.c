#include "http/http_body.h"

#include "base/buf.h"
#include "http/http_conn.h"
#include "http/http_exchange.h"
#include "net/turns.h"
#include "os/pool.h"
#include "net/tls/wire.h"

#include <string.h>

#define ALIGN        64u
#define FIRST_CHUNKS ((size_t)16384)
#define GROWTH       16u
/* up to this size; then by doubling, because address space is limited */
#define GROWTH_UP_TO    ((size_t)64 << 20)
#define READ_AT_ONCE    ((size_t)2 << 20) /* then other connections have their turn */
#define LOW_WATER_BYTES ((uint64_t)256 << 10)
#define LOW_WATER_FROM  ((uint64_t)64 << 10)
#define MAX_BODY_BYTES  (SIZE_MAX / 4)

size_t http_body_offset(const struct http1_head *h)
{
    size_t json = 0;
    for (const char *s = h->tensor_header.text; h->tensor_header.given && *s >= '0' && *s <= '9';
         s++)
        json = (json * 10 + (size_t)(*s - '0')) % ALIGN;
    return (ALIGN - json) % ALIGN;
}

/* Wakes up only when a large part of the rest has arrived. For a small rest the system call is
 * not worth it. */
static void set_low_water(struct http_conn *c)
{
    int want = 1;
    if (c->tls) /* the socket does not have what the TLS session has read ahead */
        return;
    if (c->body_left >= LOW_WATER_FROM)
        want = (int)(c->body_left < LOW_WATER_BYTES ? c->body_left : LOW_WATER_BYTES);
    else if ((uint64_t)c->low_water <= c->body_left)
        return;
    if (c->low_water == want)
        return;
    c->low_water = want;
    sock_low_water(c->fd.fd, want);
}

struct err *http_body_begin(struct http_conn *c)
{
    const struct http1_head *h = &c->parser.head;
    uint64_t size = h->chunked ? FIRST_CHUNKS : h->content_length;
    if (size > MAX_BODY_BYTES)
        return err_new(STATUS_UNAVAILABLE, "no room for a body of %llu bytes",
                       (unsigned long long)size);
    c->body_at = http_body_offset(h);
    c->body_len = 0;
    return pool_buf_of(http_conn_account(c), c->body_at + (size_t)size + HTTP_BODY_PADDING,
                       &c->body);
}

size_t http_body_take(struct http_conn *c, const char *bytes, size_t len)
{
    if (len > c->body_left)
        len = (size_t)c->body_left;
    memcpy(c->body->data + c->body_at + c->body_len, bytes, len);
    c->body_len += len;
    c->body_left -= len;
    c->body_error = pool_arrived(c->body, c->body_at + c->body_len);
    return len;
}

long http_body_read(struct http_conn *c)
{
    size_t most = c->fd.lane == LOOP_LANE_FRONT ? READ_AT_ONCE : TURNS_LONG;
    size_t want = c->body_left < most ? (size_t)c->body_left : most;
    ssize_t got = wire_read(c->fd.fd, c->tls, c->body->data + c->body_at + c->body_len, want);
    if (got > 0) {
        c->body_len += (size_t)got;
        c->body_left -= (uint64_t)got;
        c->body_error = pool_arrived(c->body, c->body_at + c->body_len);
    }
    if (c->body_left && got != 0 && got != -2)
        set_low_water(c);
    return got;
}

/* Grows by much: unused memory costs nothing, and a copy delays everybody else on the loop. */
static size_t next_cap(size_t cap, uint64_t max)
{
    size_t times = cap * GROWTH <= GROWTH_UP_TO ? GROWTH : 2;
    return cap < max / times ? cap * times : (size_t)max;
}

static struct err *http_body_grow(struct http_conn *c, size_t len)
{
    size_t cap = c->body->size - c->body_at - HTTP_BODY_PADDING;
    while (cap - c->body_len < len)
        cap = next_cap(cap, c->body_max);
    struct buf *larger;
    struct err *e = pool_buf_arriving(c->body_at + cap + HTTP_BODY_PADDING, &larger);
    if (e)
        return e;
    e = pool_arrived(larger, c->body_at + c->body_len);
    if (e) {
        buf_unref(larger);
        return e;
    }
    memcpy(larger->data + c->body_at, c->body->data + c->body_at, c->body_len);
    buf_unref(c->body);
    c->body = larger;
    return NULL;
}

/* Makes charged room for len more bytes of a chunked body. */
static struct err *http_body_make_room(struct http_conn *c, size_t len)
{
    size_t end = c->body_at + c->body_len + len;
    struct err *e = end + HTTP_BODY_PADDING > c->body->size ? http_body_grow(c, len) : NULL;
    return e ? e : pool_arrived(c->body, end);
}

bool http_body_piece(void *conn, const char *bytes, size_t len)
{
    struct http_conn *c = conn;
    if (c->phase != HTTP_PHASE_CHUNKS)
        return true;
    if (len > c->body_max - c->body_len)
        c->body_error =
            err_new(STATUS_INVALID_ARG,
                    "request body exceeds the maximum allowed input size of %llu bytes. Use "
                    "--http-max-input-size to increase the limit.",
                    (unsigned long long)c->body_max);
    else
        c->body_error = http_body_make_room(c, len);
    if (c->body_error)
        return false;
    memcpy(c->body->data + c->body_at + c->body_len, bytes, len);
    c->body_len += len;
    return true;
}

void http_body_end(struct http_conn *c)
{
    buf_unref(c->body);
    c->body = NULL;
    c->body_len = 0;
    c->begun = 0;
    if (c->low_water > 1 && !c->dead) {
        c->low_water = 1;
        sock_low_water(c->fd.fd, 1);
    }
}
