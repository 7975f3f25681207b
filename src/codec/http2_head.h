#pragma once
/* The head of an HTTP/2 request, field by field, in the form of codec/http1.h. The session has
 * checked the fields: names are small letters, values hold neither line ends nor NUL. Pure. */
#include "codec/http1.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of names and values, each field with 32 more as SETTINGS_MAX_HEADER_LIST_SIZE
 * counts them. */
#define HTTP2_HEAD_BYTES ((size_t)65536)

struct http2_head {
    struct http1_head head; /* complete after http2_head_end */
    size_t bytes;           /* of the fields so far */
    uint16_t error_status;  /* for http2_head_end */
    const char *error_reason;
    struct strbuf url; /* the bytes of head.url and head.headers */
    struct strbuf all;

    /* private */
    uint32_t fields;
    bool collect;
    bool sized; /* there is a Content-Length */
};

/* http2_head_init - collect: keep every header, as http1_collect.
 * http2_head_fini - free the parts; all zeros is fine. */
void http2_head_init(struct http2_head *h, bool collect);
void http2_head_fini(struct http2_head *h);

/* http2_head_field - take a field. What is over a limit is dropped; http2_head_end says so. */
void http2_head_field(struct http2_head *h, const char *name, size_t name_len, const char *value,
                      size_t len);

/* http2_head_end - all fields came. A body without Content-Length counts as chunked.
 * ends     no body follows
 * returns  false if the request must be answered with error_status and error_reason */
bool http2_head_end(struct http2_head *h, bool ends);
