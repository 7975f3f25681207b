#pragma once
/* The routes of the inference port, and the meaning of a path. Paths are used as sent, without
 * decoding, as in the reference. Pure. */
#include "http/http_service.h"

#include <stddef.h>

enum http_route_kind {
    HTTP_ROUTE_NONE,
    HTTP_ROUTE_SERVER,    /* /v2 */
    HTTP_ROUTE_LIVE,      /* /v2/health/live */
    HTTP_ROUTE_READY,     /* /v2/health/ready */
    HTTP_ROUTE_ALL_STATS, /* /v2/models/stats */
    HTTP_ROUTE_MODEL,     /* /v2/models/M[/versions/N], and the next seven behind it */
    HTTP_ROUTE_MODEL_INFER,
    HTTP_ROUTE_MODEL_READY,
    HTTP_ROUTE_MODEL_CONFIG,
    HTTP_ROUTE_MODEL_STATS,
    HTTP_ROUTE_MODEL_GENERATE,
    HTTP_ROUTE_MODEL_GENERATE_STREAM,
    HTTP_ROUTE_MODEL_TRACE,   /* /v2/models/M/trace/setting */
    HTTP_ROUTE_INDEX,         /* /v2/repository[/R]/index */
    HTTP_ROUTE_CONTROL,       /* /v2/repository[/R]/models/M/load or unload */
    HTTP_ROUTE_SHARED_MEMORY, /* /v2/systemsharedmemory..., /v2/cudasharedmemory... */
    HTTP_ROUTE_TRACE,         /* /v2/trace/setting */
    HTTP_ROUTE_LOGGING,       /* /v2/logging */
};

/* http_route_find - match a request target of len bytes, at most HTTP1_MAX_URL_BYTES: origin
 * form or absolute form; a query is ignored. */
struct http_route http_route_find(const char *target, size_t len);
