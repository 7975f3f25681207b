/* The HTTP/1.1 parser: it must understand the same bytes in the same way, in one piece or in
 * many. The first byte is the size of a piece. */
#include "base/check.h"
#include "base/strbuf.h"
#include "codec/http1.h"

#include <string.h>

/* The result of parsing a connection, as text. */
struct seen {
    struct strbuf text;
    bool over;     /* the connection cannot continue */
    uint64_t left; /* bytes that are left of a body of known length */
};

static bool on_piece(void *owner, const char *bytes, size_t len)
{
    struct seen *s = owner;
    strbuf_append(&s->text, bytes, len);
    return s->text.len < 1 << 20;
}

static void note_head(struct seen *s, const struct http1_head *h)
{
    strbuf_printf(&s->text, "\n[%d %d %d %d %d %llu %d %d %s] ", h->method, h->minor, h->keep_alive,
                  h->chunked, h->expect_continue, (unsigned long long)h->content_length,
                  h->content_coding, h->accept_coding,
                  h->tensor_header.given ? h->tensor_header.text : "-");
    strbuf_append(&s->text, h->url, h->url_len);
    s->left = h->content_length;
}

/* Take one step; returns the number of bytes that it used. */
static size_t step(struct http1_parser *p, struct seen *s, const char *data, size_t len)
{
    if (s->left) {
        size_t n = s->left < len ? (size_t)s->left : len;
        strbuf_append(&s->text, data, n);
        s->left -= n;
        if (!s->left)
            http1_next(p);
        return n;
    }
    size_t used = 0;
    bool in_body = p->in_body;
    enum http1_event e = http1_parse(p, data, len, &used);
    CHECK(used <= len);
    if (e == HTTP1_MORE) {
        CHECK(used == len);
    } else if (e == HTTP1_HEAD) {
        CHECK(!in_body && p->head.url);
        note_head(s, &p->head);
        if (!p->head.chunked && !s->left)
            http1_next(p);
        else
            http1_keep(p);
    } else if (e == HTTP1_END) {
        CHECK(in_body);
        strbuf_puts(&s->text, "\n[end]");
        http1_next(p);
    } else {
        strbuf_printf(&s->text, "\n[error %u]", p->error_status);
        s->over = true;
    }
    return used;
}

static struct strbuf read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct seen s = {.text = STRBUF_INIT};
    struct http1_parser p;
    http1_init(&p, on_piece, &s);
    for (size_t at = 0; at < size && !s.over;) {
        size_t n = size - at < piece ? size - at : piece;
        /* The parser must not keep pointers into a piece: the copy is gone after the step. */
        char copy[256];
        char *bytes = n <= sizeof(copy) ? copy : (char *)(uintptr_t)data + at;
        if (bytes == copy)
            memcpy(copy, data + at, n);
        for (size_t i = 0; i < n && !s.over;)
            i += step(&p, &s, bytes + i, n - i);
        memset(copy, 'x', sizeof(copy));
        at += n;
    }
    http1_fini(&p);
    return s.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct strbuf whole = read_all(data + 1, size - 1, size);
    struct strbuf pieces = read_all(data + 1, size - 1, (size_t)data[0] + 1);
    CHECK(whole.len == pieces.len &&
          (!whole.len || memcmp(whole.data, pieces.data, whole.len) == 0));
    strbuf_fini(&whole);
    strbuf_fini(&pieces);
    return 0;
}
