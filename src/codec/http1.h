#pragma once
/* The request side of HTTP/1.1: bytes in, events out, over llhttp in its strict mode. Pure.
 *
 * A message is: HTTP1_HEAD; then, for a body of known length, nothing: its bytes are the
 * caller's to take; for a chunked one calls that hand over pieces and end in HTTP1_END.
 * http1_next starts the next message. What could let two peers disagree about where a message
 * ends (both lengths, repeated or malformed lengths, any transfer coding but one "chunked",
 * folded headers, bare line feeds, ...) is refused. Trailers are read and dropped. */
#include "base/strbuf.h"

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_MAX_HEAD_BYTES  ((size_t)64 << 10)
#define HTTP1_MAX_URL_BYTES   ((size_t)16 << 10)
#define HTTP1_MAX_HEADERS     256u
#define HTTP1_MAX_CHUNKS      65536u            /* that hold bytes */
#define HTTP1_MAX_CHUNK_LINES ((size_t)2 << 20) /* bytes of chunk lines and trailers of one body */
#define HTTP1_VALUE_BYTES     128u              /* of a header value are looked at */

enum http1_event {
    HTTP1_MORE,  /* everything was taken, more bytes are needed */
    HTTP1_HEAD,  /* head is filled in; *ret_used bytes were the head's */
    HTTP1_END,   /* a chunked body is complete */
    HTTP1_ERROR, /* the connection is unusable: answer error_status, then close */
};

enum http1_method {
    HTTP1_GET,
    HTTP1_HEAD_METHOD,
    HTTP1_POST,
    HTTP1_OTHER,
};

enum http1_coding {
    HTTP1_IDENTITY,
    HTTP1_GZIP,
    HTTP1_DEFLATE,
    HTTP1_UNKNOWN_CODING,
};

/* A short header value: its first bytes, ending in NUL. */
struct http1_value {
    bool given;
    bool cut; /* longer than what is kept */
    uint8_t len;
    char text[HTTP1_VALUE_BYTES];
};

/* What the server looks at in a request head. */
struct http1_head {
    enum http1_method method;
    /* as sent, not decoded; valid until the bytes given to http1_parse go, or until http1_next
     * after http1_keep */
    const char *url;
    size_t url_len;
    uint8_t minor;           /* HTTP/1.minor */
    bool keep_alive;         /* by version and Connection */
    bool chunked;            /* the body comes in chunks; else it has content_length bytes */
    bool expect_continue;    /* Expect, whatever it says */
    uint64_t content_length; /* 0 without a Content-Length */
    enum http1_coding content_coding;
    /* the best of gzip, deflate, identity that Accept-Encoding asks for */
    enum http1_coding accept_coding;
    struct http1_value tensor_header; /* Inference-Header-Content-Length, as sent */
    /* after http1_collect: each name, NUL, value, NUL; valid as long as url after http1_keep */
    const char *headers;
    size_t headers_len;
};

/* http1_piece_fn - bytes of a chunked body, in order; valid for the call. false: stop, the parse
 * then gives HTTP1_ERROR. */
typedef bool (*http1_piece_fn)(void *owner, const char *bytes, size_t len);

/* One connection's parser. Embedded; the fields below head are private. */
struct http1_parser {
    struct http1_head head;
    uint16_t error_status;    /* of HTTP1_ERROR */
    const char *error_reason; /* static text; NULL when a piece was refused */

    llhttp_t ll;
    http1_piece_fn piece;
    void *owner;
    size_t blank_bytes; /* in front of this message */
    size_t head_bytes;  /* of this message so far */
    size_t body_bytes;  /* chunked: handed over so far */
    size_t chunk_bytes; /* chunked: taken so far, lines included */
    uint32_t headers;
    uint32_t chunks;
    uint8_t field;             /* which header the value belongs to */
    uint8_t transfer;          /* what Transfer-Encoding said */
    uint8_t name_len;          /* of the header name so far; saturates */
    bool in_value;             /* a header value has begun */
    bool in_body;              /* HTTP1_HEAD of a chunked message was given */
    bool refused;              /* by one of our own rules */
    char name[32];             /* the header name */
    struct http1_value value;  /* of the header that comes, where it is not kept in head */
    struct strbuf kept;        /* a copy of the URL */
    struct http1_known *known; /* the last head that came in one piece; NULL = none */
    bool collect;              /* all headers */
    struct strbuf all;         /* what head.headers will be */
};

/* http1_init - piece and owner serve chunked bodies. http1_fini - NULL-safe parts only. */
void http1_init(struct http1_parser *p, http1_piece_fn piece, void *owner);
void http1_fini(struct http1_parser *p);

/* http1_collect - keep every header of the messages that follow. Before the first. */
void http1_collect(struct http1_parser *p);

/* http1_header - the value of a header of that name in head->headers, upper and lower case being
 * the same, with the blanks at its end as they were sent; NULL when there is none.
 * after  what the last call returned, for the next one; NULL = the first */
const char *http1_header(const struct http1_head *head, const char *name, const char *after);

/* http1_parse - take bytes of the message.
 * ret_used  how many of len bytes were taken; all of them for HTTP1_MORE
 * Not to be called between HTTP1_HEAD of a message that is not chunked, or HTTP1_END, and
 * http1_next. */
enum http1_event http1_parse(struct http1_parser *p, const char *data, size_t len,
                             size_t *ret_used);

/* http1_keep - after HTTP1_HEAD: copy what head points to, so that it outlives the bytes that
 * were parsed. */
void http1_keep(struct http1_parser *p);

/* http1_next - be ready for the next message; head is cleared. */
void http1_next(struct http1_parser *p);

/* http1_idle - no byte of a message has come yet (blank lines aside). */
bool http1_idle(const struct http1_parser *p);

/* http1_accept_coding - what an Accept-Encoding value asks for: the coding with the highest
 * weight that we have, identity when none of ours is named. len bytes. */
enum http1_coding http1_accept_coding(const char *value, size_t len);
