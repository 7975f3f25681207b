#include "net/http_exchange.h"

#include "base/mem.h"
#include "base/slab.h"
#include "codec/json_out.h"
#include "infer/response.h"
#include "net/http_conn.h"

#include <string.h>

static const struct slab slab = {.index = 5, .object_bytes = sizeof(struct http_exchange)};

struct http_exchange *http_exchange_new(struct http_conn *c)
{
    struct http_exchange *x = slab_alloc(&slab);
    *x = (struct http_exchange){
        .magic = HTTP_EXCHANGE_MAGIC, .conn = c, .keep_alive = true, .shard = c->shard};
    list_append(&c->exchanges, &x->node);
    c->in_flight++;
    return x;
}

void http_exchange_free(struct http_exchange *x)
{
    response_free(x->response);
    buf_unref(x->rendered);
    mem_free(x->owned);
    x->magic = 0;
    slab_free(&slab, x);
}

void http_exchange_done(struct http_exchange *x)
{
    x->done = true;
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

void http_exchange_text(struct http_exchange *x, uint16_t status, const char *content_type,
                        char *body, size_t len)
{
    x->owned = body;
    http_exchange_static(x, status, content_type, body, len);
}

void http_exchange_fault(struct http_exchange *x, uint16_t status, const char *message)
{
    size_t len = strlen(message);
    char *text = mem_alloc(json_out_string_bytes(len) + 16);
    char *end = JSON_OUT_LITERAL(text, "{\"error\":");
    end = json_out_string(end, message, len);
    *end++ = '}';
    http_exchange_text(x, status, HTTP_JSON, text, (size_t)(end - text));
}

void http_exchange_error(struct http_exchange *x, struct err *e)
{
    http_exchange_fault(x, (uint16_t)status_http(err_code(e)), err_message(e));
    err_free(e);
}
