#include "codec/http2_head.h"

#include <string.h>

#define IS(text, len, literal) \
    ((len) == sizeof(literal) - 1 && memcmp((text), (literal), sizeof(literal) - 1) == 0)

/* What each field counts besides its bytes. */
#define FIELD_BYTES 32u

void http2_head_init(struct http2_head *h, bool collect)
{
    *h = (struct http2_head){.collect = collect,
                             .head = {.method = HTTP1_OTHER, .minor = 1, .keep_alive = true}};
}

void http2_head_fini(struct http2_head *h)
{
    strbuf_fini(&h->url);
    strbuf_fini(&h->all);
    h->head.url = h->head.headers = "";
    h->head.url_len = h->head.headers_len = 0;
}

/* The first reason counts. */
static void refuse_head(struct http2_head *h, uint16_t status, const char *reason)
{
    if (h->error_status)
        return;
    h->error_status = status;
    h->error_reason = reason;
}

static enum http1_method method_named(const char *name, size_t len)
{
    if (IS(name, len, "GET"))
        return HTTP1_GET;
    if (IS(name, len, "HEAD"))
        return HTTP1_HEAD_METHOD;
    if (IS(name, len, "POST"))
        return HTTP1_POST;
    if (IS(name, len, "OPTIONS"))
        return HTTP1_OPTIONS;
    return IS(name, len, "DELETE") ? HTTP1_DELETE : HTTP1_OTHER;
}

static void take_length(struct http2_head *h, const char *value, size_t len)
{
    uint64_t sum = 0;
    bool fine = len > 0;
    for (size_t i = 0; i < len && fine; i++)
        fine = value[i] >= '0' && value[i] <= '9' && !__builtin_mul_overflow(sum, 10, &sum) &&
               !__builtin_add_overflow(sum, (uint64_t)(value[i] - '0'), &sum);
    if (!fine || (h->sized && sum != h->head.content_length))
        refuse_head(h, 400, "Content-Length is no number, or two");
    h->sized = true;
    h->head.content_length = sum;
}

/* The bytes that HTTP/1.1 takes: others come as escapes. */
static bool is_visible(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~') /* a char may be negative */
            return false;
    return true;
}

/* What HTTP/1.1 says in its first line, and in Host. Returns false for other fields. */
static bool take_pseudo(struct http2_head *h, const char *name, size_t name_len, const char *value,
                        size_t len)
{
    if (!name_len || *name != ':')
        return false;
    if (IS(name, name_len, ":method"))
        h->head.method = method_named(value, len);
    else if (IS(name, name_len, ":path") && len > HTTP1_MAX_URL_BYTES)
        refuse_head(h, 414, "the URI is over 16384 bytes");
    else if (IS(name, name_len, ":path") && !is_visible(value, len))
        refuse_head(h, 400, "the URI holds bytes that have to be escaped");
    else if (IS(name, name_len, ":path"))
        strbuf_append(&h->url, value, len);
    return true;
}

static void collect_field(struct http2_head *h, const char *name, size_t name_len,
                          const char *value, size_t len)
{
    strbuf_append(&h->all, name, name_len);
    strbuf_putc(&h->all, '\0');
    strbuf_append(&h->all, value, len);
    strbuf_putc(&h->all, '\0');
}

void http2_head_field(struct http2_head *h, const char *name, size_t name_len, const char *value,
                      size_t len)
{
    h->bytes += name_len + len + FIELD_BYTES;
    if (h->bytes > HTTP2_HEAD_BYTES) {
        refuse_head(h, 431, "the request head is over 65536 bytes");
        return;
    }
    if (take_pseudo(h, name, name_len, value, len)) {
        if (IS(name, name_len, ":authority"))
            collect_field(h, "host", 4, value, len);
        return;
    }
    if (++h->fields > HTTP1_MAX_HEADERS) {
        refuse_head(h, 431, "the request has over 256 headers");
        return;
    }
    if (IS(name, name_len, "content-length"))
        take_length(h, value, len);
    const char *refused = http1_note(&h->head, name, name_len, value, len);
    if (refused)
        refuse_head(h, 400, refused);
    if (h->collect || http1_keeps(name, name_len))
        collect_field(h, name, name_len, value, len);
}

bool http2_head_end(struct http2_head *h, bool ends)
{
    h->head.url = strbuf_str(&h->url);
    h->head.url_len = h->url.len;
    h->head.headers = h->all.data;
    h->head.headers_len = h->all.len;
    h->head.chunked = !h->sized && !ends;
    return !h->error_status;
}
