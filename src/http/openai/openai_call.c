#include "http/openai/openai_call.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "codec/pb_utf8.h"
#include "http/api/http_infer.h"
#include "http/api/http_json.h"
#include "http/http_decode.h"
#include "http/http_conn.h"
#include "http/http_event.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "http/openai/openai_answer.h"
#include "http/openai/openai_fill.h"
#include "infer/request_text.h"
#include "infer/response.h"
#include "model/config.h"
#include "net/forward.h"
#include "os/clock.h"
#include "serve/version.h"
#include "server/server.h"
#include "tracing/tracing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DONE "[DONE]"

/* What the memory of an event may have besides its text. */
#define SPARE_BYTES ((size_t)512)

/* What a call holds that does not lie in the memory of its request. */
static void openai_call_end(struct openai_call *call)
{
    for (uint32_t i = 0; i < call->choice_count; i++)
        strbuf_fini(&call->choices[i].text);
    mem_free(call->choices);
    strbuf_fini(&call->answer);
    budget_drop(call->account, call->held);
    err_free(call->error);
    call->magic = 0;
}

/* No more is told of the model's responses. */
static void openai_call_fail(struct openai_call *call, struct err *e)
{
    call->error = e;
    if (call->x->request)
        request_cancel(call->x->request);
}

/* Makes an event of a text, and the text empty. */
static void tell_chunk(struct openai_call *call, struct strbuf *text)
{
    size_t len = text->len;
    bool roomy = text->cap - len > len + SPARE_BYTES; /* more than what it is charged as */
    char *event = strbuf_take(text);
    http_event_text(call->x, roomy ? mem_realloc(event, len + 1) : event, len);
}

static void take_response(struct openai_call *call, struct response *r)
{
    struct strbuf chunk = STRBUF_INIT;
    struct err *e = r->error;
    r->error = NULL;
    if (!e)
        e = openai_answer_take(call, r, &chunk);
    if (e)
        openai_call_fail(call, e);
    else if (chunk.len)
        tell_chunk(call, &chunk);
    strbuf_fini(&chunk);
}

static void end_events(struct openai_call *call)
{
    struct http_exchange *x = call->x;
    struct strbuf text = STRBUF_INIT;
    if (openai_answer_last(call, &text) && !x->given_up)
        tell_chunk(call, &text);
    strbuf_fini(&text);
    if (!x->given_up && openai_answer_usage(call, &text))
        tell_chunk(call, &text);
    strbuf_puts(&text, DONE);
    if (!x->given_up)
        tell_chunk(call, &text);
    strbuf_fini(&text);
    http_event_end(x);
}

/* An answer of which nothing was told is an error as everywhere. */
static void end_with_error(struct openai_call *call)
{
    struct http_exchange *x = call->x;
    struct err *e = call->error;
    call->error = NULL;
    if (!x->begun) {
        x->part = HTTP_PART_WHOLE;
        http_exchange_error(x, e);
        return;
    }
    http_event_error(x, e);
    http_event_end(x);
}

static void end_whole(struct openai_call *call)
{
    struct strbuf text = STRBUF_INIT;
    openai_answer_whole(call, &text);
    size_t len = text.len;
    http_exchange_text(call->x, 200, HTTP_JSON, strbuf_take(&text), len);
}

/* The model has said all. */
static void answer_call(struct openai_call *call)
{
    struct http_exchange *x = call->x;
    if (!call->responses && !call->error)
        call->error = err_new(STATUS_INTERNAL, "the model gave no response");
    if (!x->conn)
        http_exchange_free(x);
    else if (x->given_up)
        http_event_end(x);
    else if (call->error)
        end_with_error(call);
    else if (call->streamed)
        end_events(call);
    else
        end_whole(call);
}

/* The model says more than there is room for. */
static void give_call_up(struct openai_call *call)
{
    if (call->streamed)
        http_event_give_up(call->x);
    else
        openai_call_fail(call, budget_busy(0, "no room for what the model says"));
}

static void openai_on_response(struct response *response, void *owner)
{
    struct openai_call *call = owner;
    CHECK_MAGIC(call, OPENAI_CALL_MAGIC);
    struct http_exchange *x = call->x;
    bool final = response->flags & RESPONSE_FINAL;
    if (final) {
        x->request = NULL;
        if (x->trace)
            tracing_mark(x->trace, "INFER_RESPONSE_COMPLETE", clock_now_ns());
    }
    bool told = x->conn && !x->given_up && !call->error;
    if (told && request_is_overrun(response->request))
        give_call_up(call);
    else if (told && !response->empty)
        take_response(call, response);
    if (final) {
        answer_call(call);
        openai_call_end(call);
    }
    response_free(response); /* the call lies in the memory of its request */
}

static void name_call(struct openai_call *call)
{
    static atomic_uint count; /* relaxed: only different numbers matter */
    static const char *const kinds[] = {
        [CONFIG_OPENAI_COMPLETIONS] = "cmpl",
        [CONFIG_OPENAI_CHAT] = "chatcmpl",
        [CONFIG_OPENAI_EMBEDDINGS] = "embd",
    };
    time_ns now = clock_wall_ns();
    call->created = now / TIME_S(1);
    snprintf(call->id, sizeof(call->id), "%s-%016llx%08x", kinds[call->task],
             (unsigned long long)now, atomic_fetch_add_explicit(&count, 1, memory_order_relaxed));
}

static struct openai_call *new_call(struct request *r, struct http_exchange *x,
                                    enum config_openai_task task, const char *model)
{
    struct openai_call *call = arena_zalloc(&r->arena, sizeof(*call));
    call->magic = OPENAI_CALL_MAGIC;
    call->task = task;
    call->map = r->config->openai;
    call->x = x;
    call->account = x->conn->account;
    call->model = arena_strndup(&r->arena, model, strlen(model));
    call->rows = 1;
    name_call(call);
    return call;
}

static struct err *prepare_call(struct openai_call *call, struct request *r, struct http_message *m,
                                yyjson_val *root)
{
    struct http_exchange *x = call->x;
    uint64_t most = x->shard->front->server->options->http_max_input_bytes;
    struct err *e = request_text_id(r, call->id, strlen(call->id));
    if (!e)
        e = openai_fill(call, r, root, (size_t)most, &x->param);
    if (e)
        return e;
    x->param = NULL;
    if (x->shard->front->forward)
        e = forward_add(x->shard->front->forward, m->head->headers, m->head->headers_len, r);
    return e ? e : request_prepare(r);
}

static struct err *check_task(const struct serve_version *v, enum config_openai_task task)
{
    static const char *const names[] = {
        [CONFIG_OPENAI_COMPLETIONS] = "completions",
        [CONFIG_OPENAI_CHAT] = "chat completions",
        [CONFIG_OPENAI_EMBEDDINGS] = "embeddings",
    };
    if (config_openai_serves(v->config->openai, task))
        return NULL;
    return err_new(STATUS_NOT_FOUND,
                   "The model '%s' does not serve %s: its configuration has to map them in the "
                   "parameter 'openai'",
                   v->name, names[task]);
}

/* The model that a request names, as the message about it. */
static struct err *find_named(struct http_exchange *x, yyjson_val *root, struct http_message *m,
                              struct http_route *route, struct serve_version **ret)
{
    yyjson_val *name = yyjson_obj_get(root, "model");
    if (!yyjson_is_obj(root))
        return err_new(STATUS_INVALID_ARG, "expected a JSON object, found %s",
                       yyjson_get_type_desc(root));
    x->param = "model";
    if (!yyjson_is_str(name) || !yyjson_get_len(name))
        return err_new(STATUS_INVALID_ARG, "'model': expected the name of a model");
    struct err *e = http_json_whole("model", yyjson_get_str(name), yyjson_get_len(name));
    if (e)
        return e;
    *route = (struct http_route){.kind = m->route->kind,
                                 .target = yyjson_get_str(name),
                                 .model = {0, (uint32_t)yyjson_get_len(name)}};
    m->route = route;
    return http_infer_find(x, m, true, ret);
}

static void submit_call(struct http_exchange *x, struct http_message *m, yyjson_val *root,
                        struct serve_version *v, enum config_openai_task task)
{
    struct request *r = http_infer_request(x, v, openai_on_response);
    struct openai_call *call = new_call(r, x, task, m->route->target);
    r->owner = call;
    struct err *e = prepare_call(call, r, m, root);
    if (e) {
        http_infer_refuse(x, m, r->id, e);
        request_release(r);
        return;
    }
    request_bound(r);
    if (call->streamed)
        http_event_begin(x);
    http_infer_submit(x, m, r, NULL);
}

static struct err *parse_call(struct http_exchange *x, const struct http_message *m,
                              struct http_json *ret)
{
    if (m->damage)
        return http_decode_damage(m->damage);
    if (!pb_utf8_valid(m->body, m->body_len))
        return err_new(STATUS_INVALID_ARG, "expected JSON in UTF-8");
    struct err *e = http_json_parse_body(x->shard, m, ret);
    return e && err_code(e) == STATUS_INTERNAL ? err_recode(e, STATUS_INVALID_ARG) : e;
}

void openai_call_serve(struct http_exchange *x, struct http_message *m,
                       enum config_openai_task task)
{
    enum coding coding = m->head->content_coding;
    if (coding == CODING_UNKNOWN) {
        http_exchange_fault(x, 400, "Content-Encoding: expected gzip, deflate, zstd or none");
        return;
    }
    if (coding != CODING_IDENTITY) {
        http_decode(x, m);
        return;
    }
    struct http_json json;
    struct err *e = parse_call(x, m, &json);
    if (e) {
        http_exchange_error(x, e);
        return;
    }
    struct http_message asked = *m;
    struct http_route route;
    struct serve_version *v;
    yyjson_val *root = yyjson_doc_get_root(json.doc);
    e = find_named(x, root, &asked, &route, &v);
    if (!e) {
        e = check_task(v, task);
        if (e)
            version_unpin(v);
    }
    if (e)
        http_exchange_error(x, e);
    else
        submit_call(x, &asked, root, v, task);
    http_json_end(&json);
}
