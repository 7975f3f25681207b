#include "http/http_exchange.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/slab.h"
#include "codec/json_out.h"
#include "http/http_conn.h"
#include "http/http_shard.h"
#include "infer/request_text.h"
#include "infer/response.h"
#include "metrics/recent.h"
#include "net/access.h"
#include "net/turns.h"
#include "server/server.h"
#include "server/worker.h"
#include "tracing/tracing.h"

#include <string.h>

/* Longer messages are cut if there is no room. They quote what the client sent, and a client may
 * cause many of them and read none. */
#define PLAIN_BYTES ((size_t)4096)

#define FAULT_ROOM 16u /* for the JSON around a message */

/* The status of a request whose client did not wait for the answer, and of one that was cut. */
#define CLIENT_WENT 499
#define SERVER_WENT 503

static const struct slab slab = {.kind = SLAB_HTTP_EXCHANGE,
                                 .object_bytes = sizeof(struct http_exchange)};

static struct http_exchange *insert_exchange(struct http_line *l, struct list *before)
{
    struct http_conn *c = l->conn;
    struct http_exchange *x = slab_alloc(&slab);
    *x = (struct http_exchange){.magic = HTTP_EXCHANGE_MAGIC,
                                .conn = c,
                                .line = l,
                                .keep_alive = true,
                                .shard = c->shard,
                                .framed = l->stream != NULL};
    http_conn_account(c);
    list_insert_before(before, &x->node);
    c->in_flight++;
    return x;
}

struct http_exchange *http_exchange_new(struct http_line *l)
{
    return insert_exchange(l, &l->exchanges);
}

struct http_exchange *http_exchange_before(struct http_exchange *x)
{
    return insert_exchange(x->line, &x->node);
}

void http_exchange_count(struct http_exchange *x, const struct http1_head *head)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "OPTIONS", "DELETE", "OTHER"};
    /* The reference's numbers for methods. */
    static const int numbers[] = {0, 1, 2, -1, 4, -1};
    LOG_VERBOSE(1, "HTTP request: %d %.*s", numbers[head->method], (int)head->url_len, head->url);
    x->counted = true;
    front_metrics_add(&x->shard->metrics->begun, 1);
    x->access =
        access_begin(x->conn->fd.fd, x->shard->metrics->kind->protocol, methods[head->method]);
}

void http_exchange_counted(struct http_exchange *x, uint64_t bytes)
{
    if (!x->counted)
        return;
    x->counted = false;
    front_metrics_end(x->shard->metrics, x->route, x->model, x->status);
    if (x->access) {
        x->access->out_bytes = bytes;
        access_end(x->access, x->shard->metrics->kind->routes[x->route].name, x->status);
        x->access = NULL;
    }
}

/* Releases what http_exchange_own took. */
static void disown(struct http_exchange *x)
{
    if (x->spared)
        budget_unspare(x->held);
    else
        budget_drop(x->account, x->held);
    if (x->conn)
        x->conn->unread -= x->held;
}

/* Of an exchange that is traced. */
__attribute__((cold)) static void trace_ends(struct http_exchange *x)
{
    tracing_mark(x->trace, "HTTP_SEND_END", clock_now_ns());
    tracing_end(x->trace);
}

void http_exchange_free(struct http_exchange *x)
{
    if (x->counted) {
        x->status = x->cut ? SERVER_WENT : CLIENT_WENT;
        http_exchange_counted(x, x->streamed);
    }
    if (x->trace)
        trace_ends(x);
    response_free(x->response);
    buf_unref(x->rendered);
    mem_free(x->owned);
    if (x->held)
        disown(x);
    if (x->conn)
        x->conn->event_bytes -= x->event_bytes;
    if (x->conn && x->line)
        x->line->event_bytes -= x->event_bytes;
    x->magic = 0;
    slab_free(&slab, x);
}

void http_exchange_done(struct http_exchange *x)
{
    x->done = true;
    if (x->trace)
        tracing_mark(x->trace, "HTTP_SEND_START", clock_now_ns());
    if (x->conn)
        http_conn_answered(x->conn, x);
}

void http_exchange_static(struct http_exchange *x, uint16_t status, const char *content_type,
                          const char *body, size_t len)
{
    x->status = status;
    x->content_type = content_type;
    x->body = body;
    x->body_len = len;
    http_exchange_done(x);
}

static struct budget_account *account_of(const struct http_exchange *x)
{
    return x->conn ? x->conn->account : NULL;
}

void http_exchange_own(struct http_exchange *x, char *text, size_t bytes)
{
    if (text) {
        mem_free(x->owned); /* an event for which there is no room becomes an error */
        x->owned = text;
    }
    x->account = account_of(x);
    x->held += bytes;
    if (!x->spared)
        budget_hold(x->account, bytes);
    if (x->conn)
        x->conn->unread += bytes;
}

void http_exchange_hold(struct http_exchange *x, size_t bytes)
{
    http_exchange_own(x, NULL, bytes);
}

void http_exchange_let_go(struct http_exchange *x)
{
    disown(x);
    x->held = 0;
}

/* True if a long text may wait for its client. */
static bool has_room(struct http_exchange *x, size_t bytes)
{
    if (budget_account_room(account_of(x), bytes))
        return true;
    x->spared = x->conn && x->conn->unread <= TURNS_UNREAD && budget_spare(bytes);
    return x->spared;
}

/* Counts a long text. Returns false if there is no room; the answer is then an error. */
static bool may_answer_long(struct http_exchange *x, size_t len)
{
    worker_told(x->shard->worker, len);
    if (x->conn)
        turns_told(&x->conn->told, len);
    if (has_room(x, len))
        return true;
    http_exchange_error(x, budget_busy(0, "no room for an answer of %zu bytes", len));
    return false;
}

void http_exchange_text(struct http_exchange *x, uint16_t status, const char *content_type,
                        char *body, size_t len)
{
    if (!may_answer_long(x, len)) {
        mem_free(body);
        return;
    }
    http_exchange_own(x, body, len);
    http_exchange_static(x, status, content_type, body, len);
}

void http_exchange_shared(struct http_exchange *x, uint16_t status, const char *content_type,
                          struct buf *text)
{
    if (!may_answer_long(x, text->size)) {
        buf_unref(text);
        return;
    }
    http_exchange_own(x, NULL, text->size);
    x->rendered = text;
    http_exchange_static(x, status, content_type, (const char *)text->data, text->size);
}

static size_t write_fault(const struct http_exchange *x, uint16_t status, char *to,
                          const char *message, size_t len)
{
    const struct http_service *service = x->shard->front->service;
    if (service->fault)
        return (size_t)(service->fault(x, status, message, len, to) - to);
    char *end = JSON_OUT_LITERAL(to, "{\"error\":");
    end = json_out_string(end, message, len);
    *end++ = '}';
    return (size_t)(end - to);
}

void http_exchange_fault(struct http_exchange *x, uint16_t status, const char *message)
{
    size_t around = x->shard->front->service->fault ? HTTP_SERVICE_FAULT_BYTES : FAULT_ROOM;
    size_t len = request_text_message(message);
    if (len > PLAIN_BYTES &&
        !budget_account_room(account_of(x), json_out_string_bytes(len) + around))
        len = request_text_cut(message, PLAIN_BYTES);
    size_t room = json_out_string_bytes(len) + around;
    char *text = mem_alloc(room);
    http_exchange_own(x, text, room);
    http_exchange_static(x, status, HTTP_JSON, text, write_fault(x, status, text, message, len));
}

/* Of an inference: one for a model, or by a route that is counted by model. */
static void tell_recent(const struct http_exchange *x, const char *message)
{
    const struct http_exchange *asked = x->stream ? x->stream : x;
    const struct http_shard *shard = asked->shard;
    if (asked->model || shard->metrics->kind->routes[asked->route].model_slot >= 0)
        recent_request(shard->worker->server->recent, asked->model, message);
}

void http_exchange_error(struct http_exchange *x, struct err *e)
{
    tell_recent(x, err_message(e));
    const struct http_service *service = x->shard->front->service;
    x->retry_secs = err_code(e) == STATUS_UNAVAILABLE ? err_retry_secs(e) : 0;
    uint16_t status = service->status ? service->status(x, e) : (uint16_t)status_http(err_code(e));
    http_exchange_fault(x, status, err_message(e));
    err_free(e);
}
