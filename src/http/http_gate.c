#include "http/http_gate.h"

#include "base/log.h"
#include "base/strbuf.h"
#include "codec/http1.h"
#include "http/http_conn.h"
#include "http/http_cors.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"

#include <string.h>

struct http_exchange *http_gate_begin(struct http_line *l, const struct http1_head *h)
{
    struct http_exchange *x = http_exchange_new(l);
    http_exchange_count(x, h);
    x->keep_alive = h->keep_alive;
    x->head_only = h->method == HTTP1_HEAD_METHOD;
    x->explicit_keep_alive = h->minor == 0;
    const struct http_cors *cors = x->shard->front->cors;
    if (cors)
        x->cors = http_cors_lines(cors, h);
    return x;
}

struct http_exchange *http_gate_begin_refusal(struct http_line *l, const struct http1_head *h,
                                              const struct http_route *route)
{
    struct http_exchange *x = http_gate_begin(l, h);
    x->route = (uint8_t)route->kind;
    return x;
}

/* Shows the guard all headers, and asks it. */
static enum guard_answer guarded(const struct guard *g, const struct http1_head *h,
                                 enum options_category category)
{
    struct guard_seen seen = {0};
    for (size_t at = 0; at < h->headers_len;) {
        const char *name = h->headers + at;
        size_t name_len = strlen(name);
        const char *value = name + name_len + 1;
        size_t len = strlen(value);
        guard_header(g, category, &seen, name, name_len, value, len);
        at += name_len + len + 2;
    }
    return guard_decide(g, category, &seen);
}

/* The answer to a client that may not use this route; else NULL. */
static struct http_exchange *turn_away(struct http_line *l, const struct http1_head *h,
                                       const struct http_route *route)
{
    const struct http_front *f = l->conn->shard->front;
    if (!guard_asks(&f->guard))
        return NULL;
    enum options_category category = f->service->category(route);
    if (!guard_watches(&f->guard, category))
        return NULL;
    enum guard_answer answer = guarded(&f->guard, h, category);
    if (answer == GUARD_PASS)
        return NULL;
    struct strbuf text = STRBUF_INIT;
    guard_say(&f->guard, category, answer, &text);
    struct http_exchange *x = http_gate_begin_refusal(l, h, route);
    if (answer == GUARD_NO_KEY)
        x->extra = "WWW-Authenticate: Bearer\r\n";
    http_exchange_fault(x, answer == GUARD_NO_KEY ? 401 : 403, strbuf_str(&text));
    strbuf_fini(&text);
    return x;
}

/* The answer to a browser that asks whether a page may ask; else NULL. */
static struct http_exchange *answer_browser(struct http_line *l, const struct http1_head *h,
                                            const struct http_route *route)
{
    const struct http_cors *cors = l->conn->shard->front->cors;
    const char *lines;
    if (!cors || !http_cors_preflight(cors, h, &lines))
        return NULL;
    struct http_exchange *x = http_gate_begin_refusal(l, h, route);
    x->extra = lines;
    http_exchange_static(x, 200, NULL, NULL, 0);
    return x;
}

/* The answer to a page that may not ask this; else NULL. */
static struct http_exchange *turn_page_away(struct http_line *l, const struct http1_head *h,
                                            const struct http_route *route)
{
    if (!http_cors_refuses(l->conn->shard->front->cors, h))
        return NULL;
    const char *origin = http1_header(h, "Origin", NULL);
    struct strbuf text = STRBUF_INIT;
    strbuf_printf(
        &text,
        "a page of another origin (%.*s) asked; --http-cors-origin names the origins whose "
        "pages may",
        OPTIONS_MAX_ORIGIN_BYTES, origin ? origin : "null");
    LOG_WARN("HTTP request refused: %s", strbuf_str(&text));
    struct http_exchange *x = http_gate_begin_refusal(l, h, route);
    http_exchange_fault(x, 403, strbuf_str(&text));
    strbuf_fini(&text);
    return x;
}

/* Where pages or keys are looked at: the answer to who is not let in; else NULL. */
__attribute__((noinline)) static struct http_exchange *
look_closely(struct http_line *l, const struct http1_head *h, const struct http_route *route)
{
    struct http_exchange *x = answer_browser(l, h, route);
    if (!x)
        x = turn_page_away(l, h, route);
    return x ? x : turn_away(l, h, route);
}

/* The answer to a message that the service does not want. */
__attribute__((cold, noinline)) static struct http_exchange *
refuse_message(struct http_line *l, const struct http1_head *h, const struct http_route *route,
               struct err *e)
{
    struct http_exchange *x = http_gate_begin_refusal(l, h, route);
    http_exchange_error(x, e);
    return x;
}

struct http_exchange *http_gate(struct http_line *l, struct http1_head *h,
                                struct http_route *ret_route, uint64_t *ret_max)
{
    const struct http_front *f = l->conn->shard->front;
    *ret_route = f->service->route(f, h);
    struct http_exchange *x =
        h->browser || f->cors || guard_asks(&f->guard) ? look_closely(l, h, ret_route) : NULL;
    if (x)
        return x;
    struct err *e = f->service->admit(f, h, ret_route, ret_max);
    return e ? refuse_message(l, h, ret_route, e) : NULL;
}
