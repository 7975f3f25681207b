#pragma once
/* Names in URLs. Pure. */
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* url_escape - every byte but letters, digits and "-._~" as %XX; '/' too unless keep_slash. */
void url_escape(struct strbuf *sb, const char *text, size_t len, bool keep_slash);

/* url_unescape - %XX as its byte, in place; '+' as a space when plus says so. Returns the new
 * length; what is no escape stays. */
size_t url_unescape(char *text, size_t len, bool plus);

/* What stands behind SCHEME:// in the path of a repository. */
struct url_parts {
    char *endpoint; /* "http://host:port" when the path names one; else NULL */
    char *bucket;
    char *prefix; /* "" or "a/b/": without a slash in front, with one behind, none double */
};

/* url_parse - BUCKET/PATH, HOST:PORT/BUCKET/PATH, http[s]://HOST[:PORT]/BUCKET/PATH.
 * rest    behind the scheme
 * whole   how messages name it
 * errors  INVALID_ARG: no bucket, a port that is none, a character that no host has */
struct err *url_parse(const char *rest, const char *whole, struct url_parts *ret);
void url_parts_fini(struct url_parts *p);

/* url_prefix - a path in the form of url_parts.prefix; the caller's. */
char *url_prefix(const char *path);
