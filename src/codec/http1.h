#pragma once
/* Parses HTTP/1.1 requests: bytes in, events out. Uses llhttp in its strict mode. Pure.
 *
 * Events of a message: HTTP1_HEAD. Then, if the body has a length, no further event: the caller
 * takes its bytes. If the body is chunked, its pieces are passed to a function, and HTTP1_END
 * follows. http1_next starts the next message. Anything that could let two parsers disagree
 * about the end of a message is refused: both kinds of length, repeated or malformed lengths, a
 * transfer coding other than one "chunked", folded headers, bare line feeds, and so on. Trailers
 * are read and dropped. */
#include "base/strbuf.h"
#include "codec/coding.h"

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP1_MAX_HEAD_BYTES  ((size_t)64 << 10)
#define HTTP1_MAX_URL_BYTES   ((size_t)16 << 10)
#define HTTP1_MAX_HEADERS     256u
#define HTTP1_MAX_CHUNKS      65536u            /* that contain bytes */
#define HTTP1_MAX_CHUNK_LINES ((size_t)2 << 20) /* bytes of chunk lines and trailers of one body */
#define HTTP1_VALUE_BYTES     128u              /* the kept bytes of a header value */

enum http1_event {
    HTTP1_MORE,  /* all bytes were taken, more are needed */
    HTTP1_HEAD,  /* head is complete; *ret_used bytes belong to it */
    HTTP1_END,   /* a chunked body is complete */
    HTTP1_ERROR, /* the connection cannot be used: answer with error_status, then close */
};

enum http1_method {
    HTTP1_GET,
    HTTP1_HEAD_METHOD,
    HTTP1_POST,
    HTTP1_OPTIONS,
    HTTP1_DELETE,
    HTTP1_OTHER,
};

/* http1_reads - true for GET and HEAD: who answers the one answers the other, whose body is left
 * out where answers are written. */
static inline bool http1_reads(enum http1_method method)
{
    return method == HTTP1_GET || method == HTTP1_HEAD_METHOD;
}

/* A short header value: its first bytes, followed by NUL. */
struct http1_value {
    bool given;
    bool cut; /* the value is longer than what is kept */
    uint8_t len;
    char text[HTTP1_VALUE_BYTES];
};

/* The parts of a request head that the server uses. */
struct http1_head {
    enum http1_method method;
    /* the path and the query, as sent, not decoded; valid as long as the bytes given to
     * http1_parse, or after http1_keep until http1_next */
    const char *url;
    size_t url_len;
    uint8_t minor;           /* HTTP/1.minor */
    bool keep_alive;         /* from the version and the header Connection */
    bool chunked;            /* the body is chunked; else it has content_length bytes */
    bool expect_continue;    /* the header Expect exists, with any value */
    bool browser;            /* the header Origin or Sec-Fetch-Site exists, with any value */
    uint64_t content_length; /* 0 without a Content-Length */
    enum coding content_coding;
    /* the best of gzip, deflate, zstd and identity that Accept-Encoding allows */
    enum coding accept_coding;
    struct http1_value tensor_header; /* Inference-Header-Content-Length, as sent */
    /* for each header its name, NUL, value, NUL; valid as long as url after http1_keep. Without
     * http1_collect only Host, Origin and Sec-Fetch-Site, and none of a head that comes again */
    const char *headers;
    size_t headers_len;
};

/* http1_piece_fn - gets the bytes of a chunked body, in order; valid for the call. Returning
 * false stops the parser, which then returns HTTP1_ERROR. */
typedef bool (*http1_piece_fn)(void *owner, const char *bytes, size_t len);

/* The parser of one connection. Embedded; the fields below `error_reason` are private. */
struct http1_parser {
    struct http1_head head;
    uint16_t error_status;    /* for HTTP1_ERROR */
    const char *error_reason; /* static text; NULL if the piece function returned false */

    llhttp_t ll;
    http1_piece_fn piece;
    void *owner;
    size_t blank_bytes; /* blank bytes in front of this message */
    size_t head_bytes;  /* of this message so far */
    size_t body_bytes;  /* chunked: bytes passed on so far */
    size_t chunk_bytes; /* chunked: bytes taken so far, with chunk lines */
    uint32_t headers;
    uint32_t chunks;
    uint8_t field;             /* the header that the current value belongs to */
    uint8_t transfer;          /* the value of Transfer-Encoding so far */
    uint8_t name_len;          /* length of the header name so far, limited */
    bool in_value;             /* a header value has begun */
    bool in_body;              /* HTTP1_HEAD of a chunked message was returned */
    bool refused;              /* by a rule of this parser */
    char name[32];             /* the header name */
    struct http1_value value;  /* the current header's value, if it is not kept in head */
    struct strbuf kept;        /* a copy of the URL */
    struct http1_known *known; /* the last head that came in one piece; NULL = none */
    bool collect;              /* keep all headers */
    struct strbuf all;         /* the bytes of head.headers */
};

/* http1_init - piece and owner are for chunked bodies.
 * http1_fini - free the parts; all zeros is fine. */
void http1_init(struct http1_parser *p, http1_piece_fn piece, void *owner);
void http1_fini(struct http1_parser *p);

/* http1_collect - keep every header of all messages. Call it before the first. */
void http1_collect(struct http1_parser *p);

/* http1_header - the value of a header in head->headers, ignoring the case of its name; blanks
 * at its end are kept. NULL if there is none.
 * after  the previous result, to get the next header of that name; NULL = the first */
const char *http1_header(const struct http1_head *head, const char *name, const char *after);

/* http1_parse - take bytes of the message.
 * ret_used  how many of len bytes were taken; all of them for HTTP1_MORE
 * Not to be called between HTTP1_HEAD of a message that is not chunked, or HTTP1_END, and
 * http1_next. */
enum http1_event http1_parse(struct http1_parser *p, const char *data, size_t len,
                             size_t *ret_used);

/* http1_keep - after HTTP1_HEAD: copy what head points to, so that it stays valid without the
 * parsed bytes. */
void http1_keep(struct http1_parser *p);

/* http1_next - begin the next message; head is cleared. */
void http1_next(struct http1_parser *p);

/* http1_idle - true if no byte of a message has come yet (except blank lines). */
bool http1_idle(const struct http1_parser *p);

/* http1_note - for heads that do not come from http1_parse: take what a header says that the
 * server uses, except for lengths.
 * returns  why the request must be refused with 400, static; NULL = it need not */
const char *http1_note(struct http1_head *h, const char *name, size_t name_len, const char *value,
                       size_t len);

/* http1_keeps - true for a header that is in head->headers also without http1_collect. */
bool http1_keeps(const char *name, size_t name_len);

/* http1_accept_coding - the supported coding with the highest weight in an Accept-Encoding
 * value; identity if none is named. */
enum coding http1_accept_coding(const char *value, size_t len);
