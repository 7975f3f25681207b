#pragma once
/* What browsers are told about pages of other origins (CORS, of the Fetch Standard). Made once
 * per front end; then it never changes. Credentials of the browser's own (cookies, certificates)
 * are never allowed, keys that a page sends itself are. */
#include <stdbool.h>
#include <stddef.h>

struct http1_head;
struct http_cors;

/* http_cors_new - NULL if there are no origins.
 * origins  as browsers send them, of at most OPTIONS_MAX_ORIGIN_BYTES; "*" among them = all;
 *          borrowed until http_cors_free */
struct http_cors *http_cors_new(const char *const *origins, size_t count);
void http_cors_free(struct http_cors *c);

/* http_cors_lines - what every answer to a request says: header lines, which live as long as c.
 * head  with its headers: see http1_collect */
const char *http_cors_lines(const struct http_cors *c, const struct http1_head *head);

/* http_cors_refuses - true if a page of another origin asks for more than to read, and may not.
 * Browsers send simple requests of any page without asking first, and only hide the answer.
 * c       NULL = no other origin may
 * source  CrossOriginProtection of Go's net/http */
bool http_cors_refuses(const struct http_cors *c, const struct http1_head *head);

/* http_cors_preflight - true if a browser asks whether a page may send a request, and it may.
 * ret_lines  what the answer says besides http_cors_lines; static */
bool http_cors_preflight(const struct http_cors *c, const struct http1_head *head,
                         const char **ret_lines);
