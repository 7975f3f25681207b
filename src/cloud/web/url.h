#pragma once
/* Names in URLs. Pure. */
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* url_escape - write every byte except letters, digits and "-._~" as %XX; '/' too, unless
 * keep_slash. */
void url_escape(struct strbuf *sb, const char *text, size_t len, bool keep_slash);

/* url_unescape - replace %XX by its byte, in place, and '+' by a space if `plus`. Returns the
 * new length; invalid escapes stay. */
size_t url_unescape(char *text, size_t len, bool plus);

/* url_for_all - append a URL as everybody may read it: without a name and a password in front of
 * its host, and without a query. */
void url_for_all(struct strbuf *sb, const char *url);

/* The parts of a repository's path after SCHEME://. */
struct url_parts {
    char *endpoint; /* "http://host:port" if the path names one; else NULL */
    char *bucket;
    char *prefix; /* "" or "a/b/": no leading slash, a trailing slash, no double slashes */
};

/* url_parse - BUCKET/PATH, HOST:PORT/BUCKET/PATH, http[s]://HOST[:PORT]/BUCKET/PATH.
 * rest    the text after the scheme
 * whole   the path for messages
 * errors  INVALID_ARG: no bucket, an invalid port, or an invalid character in the host */
struct err *url_parse(const char *rest, const char *whole, struct url_parts *ret);
void url_parts_fini(struct url_parts *p);

/* url_prefix - a path in the form of url_parts.prefix; owned by the caller. */
char *url_prefix(const char *path);
