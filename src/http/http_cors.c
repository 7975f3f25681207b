#include "http/http_cors.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/http1.h"

#include <string.h>

/* What an answer differs by: caches must not show one origin what was said to another. */
#define VARY "Vary: Origin\r\n"

/* Of our headers those that pages could not see otherwise. */
#define EXPOSED "Access-Control-Expose-Headers: Inference-Header-Content-Length, Retry-After\r\n"

/* "*" stands for every header but Authorization. Two hours are the longest that browsers take. */
static const char preflight[] = "Access-Control-Allow-Methods: GET, HEAD, POST\r\n"
                                "Access-Control-Allow-Headers: *, Authorization\r\n"
                                "Access-Control-Max-Age: 7200\r\n";

struct origin {
    const char *name;
    char *lines; /* owned */
};

struct http_cors {
    size_t count; /* 0 = every origin, with the lines of the first */
    struct origin of[];
};

static char *lines_for(const char *origin, const char *vary)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_printf(&sb, "Access-Control-Allow-Origin: %s\r\n" EXPOSED "%s", origin, vary);
    return strbuf_take(&sb);
}

struct http_cors *http_cors_new(const char *const *origins, size_t count)
{
    if (!count)
        return NULL;
    struct http_cors *c = mem_zalloc(sizeof(*c) + count * sizeof(*c->of));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(origins[i], "*") != 0)
            continue;
        c->of[0] = (struct origin){"*", lines_for("*", "")};
        return c;
    }
    for (; c->count < count; c->count++)
        c->of[c->count] = (struct origin){origins[c->count], lines_for(origins[c->count], VARY)};
    return c;
}

void http_cors_free(struct http_cors *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count || i == 0; i++)
        mem_free(c->of[i].lines);
    mem_free(c);
}

/* The origin of the page, if it is allowed; else NULL. */
static const struct origin *origin_of(const struct http_cors *c, const struct http1_head *head)
{
    if (!c->count)
        return &c->of[0];
    const char *name = http1_header(head, "Origin", NULL);
    for (size_t i = 0; name && i < c->count; i++)
        if (strcmp(c->of[i].name, name) == 0)
            return &c->of[i];
    return NULL;
}

const char *http_cors_lines(const struct http_cors *c, const struct http1_head *head)
{
    const struct origin *o = origin_of(c, head);
    return o ? o->lines : VARY;
}

static bool is_of_host(const char *origin, const char *host)
{
    const char *named = strstr(origin, "://");
    return named && host && strcmp(named + 3, host) == 0;
}

bool http_cors_refuses(const struct http_cors *c, const struct http1_head *head)
{
    if (!head->browser || http1_reads(head->method) || head->method == HTTP1_OPTIONS)
        return false;
    const char *site = http1_header(head, "Sec-Fetch-Site", NULL);
    const char *origin = http1_header(head, "Origin", NULL);
    bool own;
    if (site && *site) /* old browsers, and pages that came over plain HTTP, do not say it */
        own = strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    else
        own = !origin || !*origin || is_of_host(origin, http1_header(head, "Host", NULL));
    return !own && !(c && origin_of(c, head));
}

bool http_cors_preflight(const struct http_cors *c, const struct http1_head *head,
                         const char **ret_lines)
{
    *ret_lines = preflight;
    return head->method == HTTP1_OPTIONS && http1_header(head, "Origin", NULL) &&
           http1_header(head, "Access-Control-Request-Method", NULL) && origin_of(c, head);
}
