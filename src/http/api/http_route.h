#pragma once
/* The routes of the inference port, and the meaning of a path. Paths are used as sent, without
 * decoding, as in the reference. Pure. */
#include "codec/http1.h"
#include "http/http_service.h"

#include <stddef.h>

/* One for each HTTP_ROUTE of http_route.def, HTTP_ROUTE_NONE first. */
enum http_route_kind {
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) HTTP_ROUTE_##kind,
#include "http/api/http_route.def"
};

/* Methods, as bits. */
#define HTTP_ROUTE_READ (1u << HTTP1_GET | 1u << HTTP1_HEAD_METHOD)
#define HTTP_ROUTE_POST (1u << HTTP1_POST)
#define HTTP_ROUTE_ANY  (~0u)

/* How many there are: from here on a service that has all of them, too, may number routes of its
 * own. And a bit for each whose answer describes the server: see http_service.tells. */
enum {
    HTTP_ROUTE_COUNT = 0
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) +1
#include "http/api/http_route.def"
    ,
    HTTP_ROUTE_TELLS = 0
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) \
    +((tells) ? 1u << HTTP_ROUTE_##kind : 0)
#include "http/api/http_route.def"
};

/* http_route_find - match a request target of len bytes, at most HTTP1_MAX_URL_BYTES; a query is
 * ignored. */
struct http_route http_route_find(const char *target, size_t len);

/* http_route_find_bare - the same of a path without its first slash, and with no query. */
struct http_route http_route_find_bare(const char *path, size_t len);
