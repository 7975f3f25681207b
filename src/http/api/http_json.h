#pragma once
/* Parses the JSON of a body in place, with memory that is charged. Worker's thread only. */
#include "base/err.h"

#include <stddef.h>
#include <yyjson.h>

struct buf;
struct http_message;
struct http_shard;

struct http_json {
    yyjson_doc *doc;
    struct buf *memory; /* the memory of the document; NULL: the shard's memory */
};

/* http_json_parse - strings of the document lie in `text`, which parsing changes.
 * s        its memory is used for small texts: one document at a time
 * text     len bytes; HTTP_BODY_PADDING bytes after them are used and restored
 * errors   INTERNAL, as the reference: "failed to parse the request JSON buffer: ...";
 *          INVALID_ARG if it is nested so deeply that parsing needs more memory than usual for
 *          its length; UNAVAILABLE if the budget is spent */
struct err *http_json_parse(struct http_shard *s, char *text, size_t len, struct http_json *ret);

/* http_json_parse_body - the same for a whole body.
 * errors  also INTERNAL, as the reference, if there is no body */
struct err *http_json_parse_body(struct http_shard *s, const struct http_message *m,
                                 struct http_json *ret);

/* http_json_whole - check a string that is used as a C string: a zero byte in it would hide what
 * follows.
 * what    its name, for the error
 * text    len bytes and a zero byte
 * errors  INVALID_ARG if it contains a zero byte */
struct err *http_json_whole(const char *what, const char *text, size_t len);

/* http_json_end - free the document, but not its text. */
void http_json_end(struct http_json *j);

/* http_json_get - a member of an object by its name; NULL if v is not an object or has no such
 * member. */
#define http_json_get(v, literal) yyjson_obj_getn((v), "" literal, sizeof(literal) - 1)
