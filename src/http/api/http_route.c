#include "http/api/http_route.h"

#include <stdbool.h>
#include <string.h>

struct path {
    const char *at;
    const char *end;
    const char *target; /* the target that it is a part of */
};

static struct http_route_part http_route_part_of(const struct path *p, const char *start)
{
    return (struct http_route_part){(uint32_t)(start - p->target), (uint32_t)(p->at - start)};
}

/* Skips a literal at the front. Returns false if it is not there. */
static bool http_route_eat(struct path *p, const char *literal)
{
    size_t len = strlen(literal);
    if ((size_t)(p->end - p->at) < len || memcmp(p->at, literal, len) != 0)
        return false;
    p->at += len;
    return true;
}

/* True if the rest is exactly the literal. */
static bool http_route_is(const struct path *p, const char *literal)
{
    size_t len = strlen(literal);
    return (size_t)(p->end - p->at) == len && memcmp(p->at, literal, len) == 0;
}

/* Takes the bytes up to the next slash. Returns false if there are none. */
static bool eat_part(struct path *p, struct http_route_part *ret)
{
    const char *start = p->at;
    const char *slash = memchr(start, '/', (size_t)(p->end - start));
    p->at = slash ? slash : p->end;
    *ret = http_route_part_of(p, start);
    return ret->len > 0;
}

static bool eat_digits(struct path *p, struct http_route_part *ret)
{
    const char *start = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    *ret = http_route_part_of(p, start);
    return ret->len > 0;
}

static enum http_route_kind model_action(const struct path *p, bool versioned)
{
    if (p->at == p->end)
        return HTTP_ROUTE_MODEL;
    if (http_route_is(p, "/infer"))
        return HTTP_ROUTE_MODEL_INFER;
    if (http_route_is(p, "/ready"))
        return HTTP_ROUTE_MODEL_READY;
    if (http_route_is(p, "/config"))
        return HTTP_ROUTE_MODEL_CONFIG;
    if (http_route_is(p, "/stats"))
        return HTTP_ROUTE_MODEL_STATS;
    if (http_route_is(p, "/generate"))
        return HTTP_ROUTE_MODEL_GENERATE;
    if (http_route_is(p, "/generate_stream"))
        return HTTP_ROUTE_MODEL_GENERATE_STREAM;
    if (http_route_is(p, "/trace/setting") && !versioned)
        return HTTP_ROUTE_MODEL_TRACE;
    return HTTP_ROUTE_NONE;
}

/* Matches the rest after "/v2/models/". */
static void find_model(struct path p, struct http_route *r)
{
    if (!eat_part(&p, &r->model))
        return;
    if (http_route_eat(&p, "/versions/") && !eat_digits(&p, &r->version))
        return;
    r->kind = model_action(&p, r->version.len > 0);
}

/* Matches the rest after "/v2/repository/". "index" and "models/" have priority over a
 * repository with that name. */
static void http_route_find_repository(struct path p, struct http_route *r)
{
    struct http_route_part model;
    for (int named = 0; named < 2; named++) {
        struct path rest = p;
        if (named && (!eat_part(&rest, &r->repository) || !http_route_eat(&rest, "/")))
            return;
        if (http_route_is(&rest, "index")) {
            r->kind = HTTP_ROUTE_INDEX;
            return;
        }
        if (http_route_eat(&rest, "models/") && eat_part(&rest, &model) &&
            (http_route_is(&rest, "/load") || http_route_is(&rest, "/unload"))) {
            r->kind = HTTP_ROUTE_CONTROL;
            r->model = model;
            r->unload = http_route_is(&rest, "/unload");
            return;
        }
    }
}

/* Matches the rest after "/v2/systemsharedmemory" or "/v2/cudasharedmemory". */
static void find_shared_memory(struct path p, struct http_route *r)
{
    if (http_route_eat(&p, "/region/") && !eat_part(&p, &r->region))
        return;
    r->status = http_route_is(&p, "/status");
    r->unload = http_route_is(&p, "/unregister");
    if (r->status || r->unload || http_route_is(&p, "/register"))
        r->kind = HTTP_ROUTE_SHARED_MEMORY;
}

static void find_other(struct path p, struct http_route *r)
{
    if (p.at == p.end)
        r->kind = HTTP_ROUTE_SERVER;
    else if (http_route_is(&p, "/health/live"))
        r->kind = HTTP_ROUTE_LIVE;
    else if (http_route_is(&p, "/health/ready"))
        r->kind = HTTP_ROUTE_READY;
    else if (http_route_is(&p, "/trace/setting"))
        r->kind = HTTP_ROUTE_TRACE;
    else if (http_route_is(&p, "/openapi.json"))
        r->kind = HTTP_ROUTE_OPENAPI;
    else if (http_route_is(&p, "/logging"))
        r->kind = HTTP_ROUTE_LOGGING;
    else if (http_route_eat(&p, "/repository/"))
        http_route_find_repository(p, r);
    else if (http_route_eat(&p, "/systemsharedmemory"))
        find_shared_memory(p, r);
    else if ((r->cuda = http_route_eat(&p, "/cudasharedmemory")))
        find_shared_memory(p, r);
}

/* Matches a path without its first slash. */
static struct http_route find_bare(struct path p)
{
    struct http_route r = {.kind = HTTP_ROUTE_NONE};
    if (!http_route_eat(&p, "v2"))
        return r;
    if (!http_route_eat(&p, "/models/"))
        find_other(p, &r);
    else if (http_route_is(&p, "stats"))
        r.kind = HTTP_ROUTE_ALL_STATS;
    else
        find_model(p, &r);
    return r;
}

struct http_route http_route_find_bare(const char *path, size_t len)
{
    return find_bare((struct path){path, path + len, path});
}

struct http_route http_route_find(const char *target, size_t len)
{
    const char *query = memchr(target, '?', len);
    struct path p = {target, query ? query : target + len, target};
    return http_route_eat(&p, "/") ? find_bare(p) : (struct http_route){.kind = HTTP_ROUTE_NONE};
}
