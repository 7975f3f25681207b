#include "cloud/web/call.h"

#include "base/log.h"
#include "base/mem.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/retry.h"
#include "cloud/web/url.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS       5000u
#define SMALL_LIMITS     4u /* the most time for a collected answer, as a multiple of the limit */
#define MAX_STALL_SECS   15u
#define MAX_HEADER_BYTES ((size_t)32 << 10)
#define MAX_ERROR_BYTES  ((size_t)8 << 10)
#define MAX_RENEWALS     3u
#define MAX_WORDS        ((size_t)300)

/* After this many attempts that got no answer in time, the endpoint does not exist. */
#define MAX_SILENCES 3u

void call_net_init(struct call_net *n, const struct cloud_abi *abi, time_ns limit,
                   const char *ca_file)
{
    n->abi = abi;
    n->limit = limit;
    n->ca_file = ca_file;
    atomic_init(&n->cancelled, false);
    atomic_init(&n->answered, false);
    mutex_init(&n->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&n->wake);
}

void call_net_cancel(struct call_net *n)
{
    mutex_lock(&n->lock);
    atomic_store(&n->cancelled, true);
    mutex_cond_broadcast(&n->wake);
    mutex_unlock(&n->lock);
}

void call_net_fini(struct call_net *n)
{
    mutex_cond_fini(&n->wake);
    mutex_fini(&n->lock);
}

bool call_net_wait(struct call_net *n, time_ns until)
{
    mutex_lock(&n->lock);
    while (!atomic_load(&n->cancelled) && clock_now_ns() < until)
        mutex_cond_wait_until(&n->wake, &n->lock, until);
    mutex_unlock(&n->lock);
    return !atomic_load(&n->cancelled);
}

/* The reason why a header line cannot be sent. Its value may be a secret and is not shown. */
static struct err *check_line(const struct call_request *r, const char *line, size_t len)
{
    int name_len = (int)strcspn(line, ":");
    if (r->header_count == CALL_MAX_HEADERS)
        return err_new(STATUS_INVALID_ARG, "the header '%.*s' is one too many, expected at most %u",
                       name_len, line, CALL_MAX_HEADERS);
    if (len > CALL_MAX_LINE_BYTES)
        return err_new(STATUS_INVALID_ARG, "the header '%.*s' has %zu bytes, expected at most %zu",
                       name_len, line, len, CALL_MAX_LINE_BYTES);
    if (strpbrk(line, "\r\n"))
        return err_new(STATUS_INVALID_ARG, "the header '%.*s' holds the end of a line", name_len,
                       line);
    return NULL;
}

void call_header(struct call_request *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    size_t room = len < 0 ? 1 : (size_t)len + 1;
    char *line = mem_zalloc(room);
    va_start(args, fmt);
    vsnprintf(line, room, fmt, args);
    va_end(args);
    if (!r->bad)
        r->bad = check_line(r, line, room - 1);
    if (r->bad)
        mem_free(line);
    else
        r->headers[r->header_count++] = line;
}

void call_request_fini(struct call_request *r)
{
    for (size_t i = 0; i < r->header_count; i++)
        mem_free(r->headers[i]);
    strbuf_fini(&r->url);
    strbuf_fini(&r->body);
    err_free(r->bad);
}

bool call_value(const struct call_answer *a, const char *name, char *ret, size_t cap)
{
    size_t name_len = strlen(name);
    const char *at = strbuf_str(&a->headers);
    for (; *at; at = strchr(at, '\n') + 1) {
        if (strncmp(at, name, name_len) != 0 || strncmp(at + name_len, ": ", 2) != 0)
            continue;
        const char *value = at + name_len + 2;
        size_t len = strcspn(value, "\n");
        len = len < cap - 1 ? len : cap - 1;
        memcpy(ret, value, len);
        ret[len] = '\0';
        return true;
    }
    return false;
}

/* One attempt. */
struct attempt {
    struct call *c;
    struct call_net *net;
    struct retry *retry;
    const struct cloud_abi_http *x;
};

static bool web_call_on_header(void *owner, const char *name, size_t name_len, const char *value,
                               size_t value_len)
{
    struct attempt *t = owner;
    struct strbuf *h = &t->c->answer.headers;
    if (h->len + name_len + value_len + 3 > MAX_HEADER_BYTES || memchr(value, '\0', value_len))
        return false;
    for (size_t i = 0; i < name_len; i++)
        strbuf_putc(h, name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i]);
    strbuf_puts(h, ": ");
    strbuf_append(h, value, value_len);
    strbuf_putc(h, '\n');
    return true;
}

static bool web_call_on_body(void *owner, const void *data, size_t len)
{
    struct attempt *t = owner;
    struct call *c = t->c;
    c->answer.status = t->x->status;
    bool good = c->answer.status >= 200 && c->answer.status < 300;
    if (good && c->sink) {
        if (!c->sink(c->owner, &c->answer, data, len))
            return false;
        retry_progress(t->retry, clock_now_ns());
        return true;
    }
    size_t max = good ? c->max_body : MAX_ERROR_BYTES;
    size_t room = max - c->answer.body.len;
    strbuf_append(&c->answer.body, data, len < room ? len : room);
    return len <= room || !good;
}

/* Writes the message of an error: <Tag>words</Tag>, or "message": "words". */
static void put_words(struct strbuf *sb, const char *body, const char *before, const char *ends)
{
    const char *at = strstr(body, before);
    if (!at)
        return;
    at += strlen(before);
    size_t len = strcspn(at, ends);
    strbuf_printf(sb, ": %.*s", (int)(len < MAX_WORDS ? len : MAX_WORDS), at);
}

static char *say_status(const struct call_answer *a)
{
    struct strbuf sb = STRBUF_INIT;
    const char *body = strbuf_str(&a->body);
    strbuf_printf(&sb, "HTTP status %d", a->status);
    put_words(&sb, body, "<Code>", "<");
    put_words(&sb, body, "<Message>", "<\n");
    put_words(&sb, body, "\"message\": \"", "\"");
    put_words(&sb, body, "\"error_description\":\"", "\"");
    for (size_t i = 0; i < sb.len; i++)
        if ((unsigned char)sb.data[i] < 0x20)
            sb.data[i] = ' ';
    return strbuf_take(&sb);
}

/* Reads Retry-After in seconds. Dates, which stores do not send, are ignored. */
static time_ns retry_after(const struct call_answer *a)
{
    char value[32];
    if (!call_value(a, "retry-after", value, sizeof(value)))
        return 0;
    char *end;
    unsigned long long seconds = strtoull(value, &end, 10);
    return end != value && !*end && seconds < 100000 ? TIME_S(seconds) : 0;
}

static bool worth_again(int status)
{
    return status == 408 || status == 429 || (status >= 500 && status != 501);
}

static struct err * final(const struct call *c, const struct call_request *r, enum status code,
                          const char *why, unsigned attempts, time_ns took)
{
    struct strbuf url = STRBUF_INIT;
    url_for_all(&url, strbuf_str(&r->url));
    struct err *e = err_new(code, "%s: %s %s: %s (attempt %u, after %.1f s)", c->what, r->method,
                            strbuf_str(&url), why, attempts, (double)took / 1e9);
    strbuf_fini(&url);
    return e;
}

static void web_call_exchange(struct call_net *n, void *session, struct call *c,
                              struct retry *retry, struct call_request *r, struct cloud_abi_http *x)
{
    struct attempt t = {.c = c, .net = n, .retry = retry, .x = x};
    uint64_t left_ms = retry_left(retry, clock_now_ns()) / TIME_MS(1) + 1;
    uint64_t most = c->connect_ms ? c->connect_ms : CONNECT_MS;
    uint64_t stall = c->stall_secs ? c->stall_secs : MAX_STALL_SECS;
    uint64_t left_secs = left_ms / 1000 + 1;
    *x = (struct cloud_abi_http){
        .method = r->method,
        .url = strbuf_str(&r->url),
        .headers = (const char *const *)r->headers,
        .body = r->body.len ? r->body.data : NULL,
        .body_len = r->body.len,
        .ca_file = n->ca_file,
        .direct = r->direct,
        .connect_ms = (uint32_t)(left_ms < most ? left_ms : most),
        .stall_secs = (uint32_t)(left_secs < stall ? left_secs : stall),
        .total_ms = c->sink ? 0 : (uint32_t)(n->limit / TIME_MS(1) * SMALL_LIMITS),
        .cancel = &n->cancelled,
        .on_header = web_call_on_header,
        .on_body = web_call_on_body,
        .owner = &t,
    };
    c->answer.status = 0;
    c->answer.headers.len = 0;
    strbuf_puts(&c->answer.headers, "");
    c->answer.body.len = 0;
    strbuf_puts(&c->answer.body, "");
    n->abi->http(session, x);
    c->answer.status = x->status;
}

/* True if the endpoint clearly does not exist. Never true after somebody has answered. */
static bool is_nobody(struct call_net *n, struct call *c, const struct cloud_abi_http *x)
{
    if (!c->maybe)
        return false;
    if (x->status)
        atomic_store(&n->answered, true);
    c->silences += x->silent;
    return x->refused || (c->silences >= MAX_SILENCES && !atomic_load(&n->answered));
}

/* Judges an attempt. true = the call has ended, with or without *ret_e. */
static bool judge(struct call_net *n, struct call *c, const struct cloud_abi_http *x,
                  unsigned *renewals, char **ret_why, enum status *ret_code, bool *ret_at_once)
{
    int status = c->answer.status;
    bool nobody = is_nobody(n, c, x);
    *ret_why = NULL;
    *ret_code = nobody ? STATUS_NOT_FOUND : STATUS_UNAVAILABLE;
    *ret_at_once = false;
    if (x->error[0] || !status) {
        *ret_why = mem_strdup(x->error[0] ? x->error : "no answer");
        return x->hopeless || nobody;
    }
    if (status >= 200 && status < 300) {
        struct err *why = NULL;
        enum call_verdict v = c->check ? c->check(c->owner, &c->answer, &why) : CALL_FINE;
        if (v != CALL_FINE) {
            *ret_why = mem_strdup(err_message(why));
            *ret_code = v == CALL_AGAIN ? STATUS_UNAVAILABLE : err_code(why);
        }
        err_free(why);
        return v != CALL_AGAIN;
    }
    *ret_why = say_status(&c->answer);
    if (worth_again(status))
        return false;
    if (c->renew && *renewals < MAX_RENEWALS && c->renew(c->owner, &c->answer)) {
        ++*renewals;
        *ret_at_once = true;
        return false;
    }
    *ret_code = status == 404 ? STATUS_NOT_FOUND : STATUS_INVALID_ARG;
    return true;
}

struct err *call_run(struct call_net *n, void *session, struct call *c)
{
    time_ns begun = clock_now_ns();
    struct retry retry;
    unsigned renewals = 0;
    retry_init(&retry, begun, n->limit, begun ^ (uint64_t)(uintptr_t)c);
    for (unsigned attempts = 1;; attempts++) {
        struct call_request r = {.method = "GET"};
        struct cloud_abi_http x;
        char *why;
        enum status code;
        bool at_once;
        struct err *e = c->build(c->owner, session, &r);
        if (!e) {
            e = r.bad;
            r.bad = NULL;
        }
        if (e) {
            call_request_fini(&r);
            return err_wrap(e, "%s", c->what);
        }
        web_call_exchange(n, session, c, &retry, &r, &x);
        bool over = judge(n, c, &x, &renewals, &why, &code, &at_once);
        time_ns now = clock_now_ns();
        time_ns at = now;
        if (!over && !at_once)
            over = (c->most && attempts >= c->most) ||
                   !retry_next(&retry, now, retry_after(&c->answer), &at);
        if (!over)
            LOG_VERBOSE(1, "%s: attempt %u: %s", c->what, attempts, why);
        if (!over && !call_net_wait(n, at)) {
            mem_free(why);
            why = mem_strdup("the server stops");
            over = true;
        }
        if (over && why)
            e = final(c, &r, code, why, attempts, now - begun);
        mem_free(why);
        call_request_fini(&r);
        if (over)
            return e;
    }
}

void call_fini(struct call *c)
{
    strbuf_fini(&c->answer.headers);
    strbuf_fini(&c->answer.body);
}
