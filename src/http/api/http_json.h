#pragma once
/* Parsing the JSON of a body where it lies, with memory that was charged for. Worker's thread
 * only. */
#include "base/err.h"

#include <stddef.h>
#include <yyjson.h>

struct buf;
struct http_shard;

struct http_json {
    yyjson_doc *doc;
    struct buf *memory; /* what it lies in; NULL: the shard's own */
};

/* http_json_parse - strings of the document lie in `text`, which is changed by parsing.
 * s        lends its memory for small texts: one document at a time
 * text     len bytes; HTTP_BODY_PADDING bytes behind them are used and restored
 * errors   INTERNAL, as the reference: "failed to parse the request JSON buffer: ...";
 *          INVALID_ARG when it nests so deep that its parse would need more than any text of the
 *          length; UNAVAILABLE when the budget is spent */
struct err *http_json_parse(struct http_shard *s, char *text, size_t len, struct http_json *ret);

/* http_json_whole - a string that is to be used up to its end: what it holds behind a zero byte
 * must not be hidden.
 * what    it is, for the error
 * text    len bytes and a zero byte
 * errors  INVALID_ARG when there is a zero byte in it */
struct err *http_json_whole(const char *what, const char *text, size_t len);

/* http_json_end - the document goes, its text stays. */
void http_json_end(struct http_json *j);

/* http_json_get - a member of an object by its name; NULL when v is no object or has none. */
#define http_json_get(v, literal) yyjson_obj_getn((v), "" literal, sizeof(literal) - 1)
