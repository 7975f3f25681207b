#include "codec/http1.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

#define TWO_LENGTHS "Inference-Header-Content-Length is given twice"

#define KNOWN_BYTES 512u /* a longer head is not remembered */
#define ALL_BYTES   64u  /* the memory of more headers is not kept for the next head */

enum field {
    FIELD_OTHER,
    FIELD_EXPECT,
    FIELD_CONTENT_ENCODING,
    FIELD_ACCEPT_ENCODING,
    FIELD_TENSOR_HEADER,
    FIELD_TRANSFER_ENCODING,
    /* kept by every connection, for http1_header */
    FIELD_HOST,
    FIELD_ORIGIN,
    FIELD_SITE,
};

/* The value of Transfer-Encoding so far. */
enum transfer {
    TRANSFER_NONE,
    TRANSFER_EMPTY,
    TRANSFER_CHUNKED,
};

static enum field http1_field(const char *name, size_t len)
{
    switch (len) {
    case 4:
        return strncasecmp(name, "Host", 4) == 0 ? FIELD_HOST : FIELD_OTHER;
    case 6:
        if (strncasecmp(name, "Origin", 6) == 0)
            return FIELD_ORIGIN;
        return strncasecmp(name, "Expect", 6) == 0 ? FIELD_EXPECT : FIELD_OTHER;
    case 14:
        return strncasecmp(name, "Sec-Fetch-Site", 14) == 0 ? FIELD_SITE : FIELD_OTHER;
    case 15:
        return strncasecmp(name, "Accept-Encoding", 15) == 0 ? FIELD_ACCEPT_ENCODING : FIELD_OTHER;
    case 16:
        return strncasecmp(name, "Content-Encoding", 16) == 0 ? FIELD_CONTENT_ENCODING
                                                              : FIELD_OTHER;
    case 17:
        return strncasecmp(name, "Transfer-Encoding", 17) == 0 ? FIELD_TRANSFER_ENCODING
                                                               : FIELD_OTHER;
    case 31:
        return strncasecmp(name, "Inference-Header-Content-Length", 31) == 0 ? FIELD_TENSOR_HEADER
                                                                             : FIELD_OTHER;
    default:
        return FIELD_OTHER;
    }
}

static int http1_refuse(struct http1_parser *p, uint16_t status, const char *reason)
{
    p->refused = true;
    p->error_status = status;
    p->error_reason = reason;
    return HPE_USER;
}

static struct http1_value *http1_value_of(struct http1_parser *p)
{
    return p->field == FIELD_TENSOR_HEADER ? &p->head.tensor_header : &p->value;
}

/* A weight such as "q=0.5" in thousandths; 1000 if there is none, 0 if it is invalid. */
static unsigned weight_of(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == ';'))
        s++;
    if (end - s < 3 || (*s != 'q' && *s != 'Q') || s[1] != '=')
        return 1000;
    if (s[2] < '0' || s[2] > '9')
        return 0;
    if (s[2] != '0')
        return 1000;
    unsigned weight = 0, unit = 100;
    for (s += 4; s < end && *s >= '0' && *s <= '9' && unit; s++, unit /= 10)
        weight += (unsigned)(*s - '0') * unit;
    return weight;
}

enum coding http1_accept_coding(const char *value, size_t len)
{
    const char *s = value, *end = value + len;
    enum coding best = CODING_IDENTITY;
    unsigned best_weight = 0;
    while (s < end) {
        const char *comma = memchr(s, ',', (size_t)(end - s));
        const char *stop = comma ? comma : end;
        while (s < stop && (*s == ' ' || *s == '\t'))
            s++;
        const char *name = s;
        while (s < stop && *s != ';' && *s != ' ' && *s != '\t')
            s++;
        enum coding coding = coding_find(name, (size_t)(s - name));
        unsigned weight = weight_of(s, stop);
        if (coding != CODING_UNKNOWN && s > name && weight > best_weight) {
            best = coding;
            best_weight = weight;
        }
        s = stop + 1;
    }
    return best;
}

#define ONLY_CHUNKED "Transfer-Encoding other than chunked is not supported"
#define TOO_OLD      "HTTP/1.0 has no Transfer-Encoding"

static bool is_old(const struct http1_parser *p)
{
    return p->ll.http_major == 1 && p->ll.http_minor == 0;
}

/* Allows one transfer coding, once. With other or several codings, two parsers could find
 * different ends of the body. */
static int transfer_done(struct http1_parser *p)
{
    const struct http1_value *v = &p->value;
    if (is_old(p))
        return http1_refuse(p, 400, TOO_OLD);
    bool chunked = !v->cut && v->len == 7 && strncasecmp(v->text, "chunked", 7) == 0;
    if (p->transfer != TRANSFER_NONE || (v->len && !chunked))
        return http1_refuse(p, 501, ONLY_CHUNKED);
    p->transfer = chunked ? TRANSFER_CHUNKED : TRANSFER_EMPTY;
    return 0;
}

/* Handles a complete header. */
static int header_done(struct http1_parser *p)
{
    const struct http1_value *v = &p->value;
    switch ((enum field)p->field) {
    case FIELD_EXPECT: /* any value counts, as in the reference */
        p->head.expect_continue = true;
        break;
    case FIELD_TRANSFER_ENCODING:
        return transfer_done(p);
    case FIELD_CONTENT_ENCODING:
        p->head.content_coding = v->cut ? CODING_UNKNOWN : coding_find(v->text, v->len);
        break;
    case FIELD_ACCEPT_ENCODING:
        p->head.accept_coding = http1_accept_coding(v->text, v->len);
        break;
    case FIELD_TENSOR_HEADER:
    case FIELD_HOST:
    case FIELD_ORIGIN:
    case FIELD_SITE:
    case FIELD_OTHER:
        break;
    }
    return 0;
}

static struct http1_parser *parser_of(llhttp_t *ll)
{
    return ll->data;
}

static int on_url(llhttp_t *ll, const char *at, size_t len)
{
    struct http1_parser *p = parser_of(ll);
    if (p->head.url_len + len > HTTP1_MAX_URL_BYTES)
        return http1_refuse(p, 414, "the URI is over 16384 bytes");
    if (p->kept.len)
        strbuf_append(&p->kept, at, len);
    else if (!p->head.url)
        p->head.url = at;
    p->head.url_len += len;
    return 0;
}

static int on_header_field(llhttp_t *ll, const char *at, size_t len)
{
    struct http1_parser *p = parser_of(ll);
    if (p->in_value) { /* the first piece of the next name */
        p->in_value = false;
        p->name_len = 0;
    }
    if (p->name_len + len > sizeof(p->name)) {
        p->name_len = sizeof(p->name); /* no header with such a long name is used */
        return 0;
    }
    memcpy(p->name + p->name_len, at, len);
    p->name_len = (uint8_t)(p->name_len + len);
    return 0;
}

/* Not where all headers are kept: on_value_kept. */
static void keep_field(struct http1_parser *p, const char *at, size_t len)
{
    if (!p->collect)
        strbuf_append(&p->all, at, len);
}

static void begin_kept(struct http1_parser *p)
{
    p->head.browser |= p->field != FIELD_HOST;
    p->name[p->name_len] = '\0';
    keep_field(p, p->name, p->name_len + 1u);
}

static int on_header_value(llhttp_t *ll, const char *at, size_t len)
{
    struct http1_parser *p = parser_of(ll);
    if (!p->in_value) {
        p->in_value = true;
        /* Trailers are read and dropped: the head has already decided how the body is received. */
        p->field = (uint8_t)(p->in_body ? FIELD_OTHER : http1_field(p->name, p->name_len));
        if (++p->headers > HTTP1_MAX_HEADERS)
            return http1_refuse(p, 431, "the request has over 256 headers");
        if (p->field == FIELD_OTHER)
            return 0;
        if (p->field >= FIELD_HOST) {
            begin_kept(p);
            keep_field(p, at, len);
            return 0;
        }
        struct http1_value *fresh = http1_value_of(p);
        if (p->field == FIELD_TENSOR_HEADER && fresh->given)
            return http1_refuse(p, 400, TWO_LENGTHS);
        fresh->given = true;
        fresh->cut = false;
        fresh->len = 0;
    }
    if (p->field == FIELD_OTHER)
        return 0;
    if (p->field >= FIELD_HOST) {
        keep_field(p, at, len);
        return 0;
    }
    struct http1_value *v = http1_value_of(p);
    size_t room = sizeof(v->text) - 1 - v->len;
    v->cut = v->cut || len > room;
    memcpy(v->text + v->len, at, len < room ? len : room);
    v->len = (uint8_t)(v->len + (len < room ? len : room));
    v->text[v->len] = '\0';
    return 0;
}

const char *http1_note(struct http1_head *h, const char *name, size_t name_len, const char *value,
                       size_t len)
{
    struct http1_value *v = &h->tensor_header;
    switch (http1_field(name, name_len)) {
    case FIELD_EXPECT:
        h->expect_continue = true;
        break;
    case FIELD_CONTENT_ENCODING:
        h->content_coding = len < HTTP1_VALUE_BYTES ? coding_find(value, len) : CODING_UNKNOWN;
        break;
    case FIELD_ACCEPT_ENCODING:
        h->accept_coding = http1_accept_coding(value, len);
        break;
    case FIELD_TENSOR_HEADER:
        if (v->given)
            return TWO_LENGTHS;
        v->given = true;
        v->cut = len >= sizeof(v->text);
        v->len = (uint8_t)(v->cut ? sizeof(v->text) - 1 : len);
        memcpy(v->text, value, v->len);
        v->text[v->len] = '\0';
        break;
    case FIELD_ORIGIN:
    case FIELD_SITE:
        h->browser = true;
        break;
    case FIELD_TRANSFER_ENCODING:
    case FIELD_HOST:
    case FIELD_OTHER:
        break;
    }
    return NULL;
}

bool http1_keeps(const char *name, size_t name_len)
{
    return http1_field(name, name_len) >= FIELD_HOST;
}

static bool http1_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* llhttp skips the blanks before a value, but not those after it. */
static int on_header_value_complete(llhttp_t *ll)
{
    struct http1_parser *p = parser_of(ll);
    if (p->field == FIELD_OTHER)
        return 0;
    if (p->field >= FIELD_HOST) {
        keep_field(p, "", 1);
        return 0;
    }
    struct http1_value *v = http1_value_of(p);
    while (v->len && http1_is_blank(v->text[v->len - 1]))
        v->text[--v->len] = '\0';
    return header_done(p);
}

static enum http1_method method_of(uint8_t m)
{
    if (m == HTTP_POST)
        return HTTP1_POST;
    if (m == HTTP_GET)
        return HTTP1_GET;
    if (m == HTTP_HEAD)
        return HTTP1_HEAD_METHOD;
    if (m == HTTP_DELETE)
        return HTTP1_DELETE;
    return m == HTTP_OPTIONS ? HTTP1_OPTIONS : HTTP1_OTHER;
}

static int on_headers_complete(llhttp_t *ll)
{
    struct http1_parser *p = parser_of(ll);
    struct http1_head *h = &p->head;
    if (ll->http_major != 1)
        return http1_refuse(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    h->chunked = (ll->flags & F_CHUNKED) != 0;
    if (p->transfer == TRANSFER_EMPTY)
        return http1_refuse(p, 400, "Transfer-Encoding names no coding");
    if (h->chunked != (p->transfer == TRANSFER_CHUNKED))
        return http1_refuse(p, 501, ONLY_CHUNKED);
    h->method = method_of(ll->method);
    h->minor = ll->http_minor;
    h->keep_alive = llhttp_should_keep_alive(ll) && ll->method != HTTP_CONNECT;
    h->content_length = h->chunked ? 0 : ll->content_length;
    return HPE_PAUSED;
}

static int http1_on_body(llhttp_t *ll, const char *at, size_t len)
{
    struct http1_parser *p = parser_of(ll);
    p->body_bytes += len;
    return p->piece(p->owner, at, len) ? 0 : http1_refuse(p, 0, NULL);
}

static int on_chunk_header(llhttp_t *ll)
{
    struct http1_parser *p = parser_of(ll);
    if (ll->content_length && ++p->chunks > HTTP1_MAX_CHUNKS)
        return http1_refuse(
            p, 400,
            "Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer "
            "or larger HTTP chunks.");
    return 0;
}

static int on_message_complete(llhttp_t *ll)
{
    (void)ll;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = http1_on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

/* As on_field, for connections that keep all headers. */
static int on_field_kept(llhttp_t *ll, const char *at, size_t len)
{
    struct http1_parser *p = parser_of(ll);
    if (!p->in_body)
        strbuf_append(&p->all, at, len);
    return on_header_field(ll, at, len);
}

static int on_value_kept(llhttp_t *ll, const char *at, size_t len)
{
    struct http1_parser *p = parser_of(ll);
    if (!p->in_body)
        strbuf_append(&p->all, at, len);
    return on_header_value(ll, at, len);
}

static int on_field_kept_complete(llhttp_t *ll)
{
    struct http1_parser *p = parser_of(ll);
    if (!p->in_body)
        strbuf_putc(&p->all, '\0');
    return 0;
}

static int on_value_kept_complete(llhttp_t *ll)
{
    on_field_kept_complete(ll);
    return on_header_value_complete(ll);
}

static const llhttp_settings_t collecting = {
    .on_url = on_url,
    .on_header_field = on_field_kept,
    .on_header_field_complete = on_field_kept_complete,
    .on_header_value = on_value_kept,
    .on_header_value_complete = on_value_kept_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = http1_on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

void http1_init(struct http1_parser *p, http1_piece_fn piece, void *owner)
{
    *p = (struct http1_parser){.piece = piece, .owner = owner};
    http1_next(p);
}

void http1_fini(struct http1_parser *p)
{
    strbuf_fini(&p->kept);
    strbuf_fini(&p->all);
    mem_free(p->known);
    p->known = NULL;
}

void http1_next(struct http1_parser *p)
{
    p->head = (struct http1_head){0};
    p->error_status = 0;
    p->error_reason = NULL;
    p->blank_bytes = p->head_bytes = p->body_bytes = p->chunk_bytes = 0;
    p->headers = p->chunks = 0;
    p->field = FIELD_OTHER;
    p->transfer = TRANSFER_NONE;
    p->name_len = 0;
    p->in_value = p->in_body = p->refused = false;
    strbuf_fini(&p->kept);
    p->all.len = 0;
    if (p->all.cap > ALL_BYTES)
        strbuf_fini(&p->all);
    llhttp_init(&p->ll, HTTP_REQUEST, p->collect ? &collecting : &settings);
    p->ll.data = p;
}

void http1_collect(struct http1_parser *p)
{
    p->collect = true;
    http1_next(p);
}

const char *http1_header(const struct http1_head *head, const char *name, const char *after)
{
    if (!head->headers_len)
        return NULL;
    const char *at = after ? after + strlen(after) + 1 : head->headers;
    const char *end = head->headers + head->headers_len;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (strcasecmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

bool http1_idle(const struct http1_parser *p)
{
    return !p->head.url_len && p->ll.initial_message_completed == 0 && p->head_bytes == 0;
}

void http1_keep(struct http1_parser *p)
{
    if (p->head.url && !p->kept.len)
        strbuf_append(&p->kept, p->head.url, p->head.url_len);
    if (p->kept.len)
        p->head.url = p->kept.data;
}

/* Proxies send "http://authority/path?query". Of this the path and the query are kept, which is
 * what all others send (RFC 9112, 3.2.2). */
static void http1_drop_authority(struct http1_parser *p)
{
    struct http1_head *h = &p->head;
    const char *end = h->url + h->url_len;
    const char *scheme = h->url_len > 4 && h->url[4] != ':' ? "https://" : "http://";
    size_t len = strlen(scheme);
    if (h->url_len < len || strncasecmp(h->url, scheme, len) != 0)
        return;
    const char *at = h->url + len;
    while (at < end && *at != '/' && *at != '?')
        at++;
    struct strbuf rest = STRBUF_INIT;
    if (at == end || *at == '?')
        strbuf_putc(&rest, '/');
    strbuf_append(&rest, at, (size_t)(end - at));
    strbuf_fini(&p->kept);
    p->kept = rest;
    h->url = rest.data;
    h->url_len = rest.len;
}

static enum http1_event http1_failed(struct http1_parser *p, uint16_t status, const char *reason)
{
    p->error_status = status;
    p->error_reason = reason;
    return HTTP1_ERROR;
}

/* A remembered head. Clients usually send the same head again, and comparing costs a twentieth
 * of parsing. */
struct http1_known {
    struct http1_head head;
    size_t url_at;
    size_t len;
    size_t room;
    char bytes[];
};

static bool take_known(struct http1_parser *p, const char *data, size_t len)
{
    const struct http1_known *k = p->known;
    if (!k || len < k->len || memcmp(data, k->bytes, k->len) != 0)
        return false;
    p->head = k->head;
    p->head.url = data + k->url_at;
    p->head_bytes = k->len;
    return true;
}

/* Not for chunked messages: the parser continues their bodies from its state in the head. Nor for
 * browsers: what they say of the page is looked at, and headers are not remembered. Nor where the
 * URL is not as sent. */
static void remember(struct http1_parser *p, const char *data, size_t len)
{
    if (len > KNOWN_BYTES || p->head.chunked || p->collect || p->head.browser || p->kept.len)
        return;
    if (!p->known || p->known->room < len) {
        p->known = mem_realloc(p->known, sizeof(*p->known) + len);
        p->known->room = len;
    }
    struct http1_known *k = p->known;
    k->head = p->head;
    k->head.headers = NULL;
    k->head.headers_len = 0;
    k->url_at = (size_t)(p->head.url - data);
    k->len = len;
    memcpy(k->bytes, data, len);
}

/* The method is unknown. Bytes that are no method at all, such as the beginning of TLS, get the
 * same error. */
static enum http1_event unknown_method(struct http1_parser *p)
{
    const char *at = llhttp_get_error_pos(&p->ll);
    return *at >= 'A' && *at <= 'Z' ? http1_failed(p, 405, "Method Not Allowed")
                                    : http1_failed(p, 400, llhttp_get_error_reason(&p->ll));
}

/* Parses a part of the head; pauses after its last byte. */
static enum http1_event parse_lines(struct http1_parser *p, const char *data, size_t len,
                                    size_t *ret_used)
{
    bool begins = http1_idle(p);
    if (begins && take_known(p, data, len)) {
        *ret_used = p->known->len;
        return HTTP1_HEAD;
    }
    llhttp_errno_t e = llhttp_execute(&p->ll, data, len);
    size_t used = e == HPE_OK ? len : (size_t)(llhttp_get_error_pos(&p->ll) - data);
    *ret_used = used;
    p->head_bytes += used;
    if (p->refused)
        return HTTP1_ERROR;
    if (p->head_bytes > HTTP1_MAX_HEAD_BYTES)
        return http1_failed(p, 431, "the request head is over 65536 bytes");
    if (e == HPE_OK) {
        http1_keep(p);
        return HTTP1_MORE;
    }
    if (e == HPE_INVALID_METHOD && used < len)
        return unknown_method(p);
    if (e == HPE_INVALID_TRANSFER_ENCODING && !(p->ll.flags & F_CONTENT_LENGTH))
        return is_old(p) ? http1_failed(p, 400, TOO_OLD) : http1_failed(p, 501, ONLY_CHUNKED);
    if (e != HPE_PAUSED)
        return http1_failed(p, 400, llhttp_get_error_reason(&p->ll));
    if (p->kept.len)
        p->head.url = p->kept.data;
    http1_drop_authority(p);
    p->head.headers = p->all.data;
    p->head.headers_len = p->all.len;
    p->in_body = p->head.chunked;
    if (begins)
        remember(p, data, used);
    return HTTP1_HEAD;
}

/* Skips blank lines in front of a message; they do not belong to it. */
static enum http1_event parse_head(struct http1_parser *p, const char *data, size_t len,
                                   size_t *ret_used)
{
    size_t blank = 0;
    if (http1_idle(p))
        while (blank < len && (data[blank] == '\r' || data[blank] == '\n'))
            blank++;
    *ret_used = blank;
    p->blank_bytes += blank;
    if (p->blank_bytes > HTTP1_MAX_HEAD_BYTES)
        return http1_failed(p, 431, "over 65536 bytes of blank lines came before a request");
    size_t used = 0;
    enum http1_event event =
        blank < len ? parse_lines(p, data + blank, len - blank, &used) : HTTP1_MORE;
    *ret_used = blank + used;
    return event;
}

static enum http1_event parse_chunks(struct http1_parser *p, const char *data, size_t len,
                                     size_t *ret_used)
{
    if (llhttp_get_errno(&p->ll) == HPE_PAUSED)
        llhttp_resume(&p->ll);
    llhttp_errno_t e = llhttp_execute(&p->ll, data, len);
    size_t used = e == HPE_OK ? len : (size_t)(llhttp_get_error_pos(&p->ll) - data);
    *ret_used = used;
    p->chunk_bytes += used;
    if (p->refused)
        return HTTP1_ERROR;
    if (p->chunk_bytes - p->body_bytes > HTTP1_MAX_CHUNK_LINES)
        return http1_failed(p, 431, "the chunk lines and trailers of the body are over 2 MiB");
    if (e == HPE_OK)
        return HTTP1_MORE;
    if (e != HPE_PAUSED && e != HPE_PAUSED_UPGRADE)
        return http1_failed(p, 400, llhttp_get_error_reason(&p->ll));
    return HTTP1_END;
}

enum http1_event http1_parse(struct http1_parser *p, const char *data, size_t len, size_t *ret_used)
{
    return p->in_body ? parse_chunks(p, data, len, ret_used) : parse_head(p, data, len, ret_used);
}
