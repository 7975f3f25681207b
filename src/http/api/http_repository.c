#include "http/api/http_repository.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/pb_json.h"
#include "http/api/http_json.h"
#include "http/api/http_route.h"
#include "http/http_conn.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "net/control_task.h"
#include "server/control/describe.h"
#include "server/worker.h"

#include <string.h>

#define FILE_PREFIX "file:"

static struct control_task *new_task(struct http_exchange *x, const struct http_message *m,
                                     void (*finish)(struct control_task *t))
{
    const struct http_route *route = m->route;
    struct control_task *t = control_task_new(x->shard->worker->loop, finish, x);
    t->model = mem_strndup(http_message_part(m, route->model), route->model.len);
    t->repository = mem_strndup(http_message_part(m, route->repository), route->repository.len);
    return t;
}

/* The exchange to answer. If nobody waits any more, frees it and returns NULL. */
static struct http_exchange *answered(struct control_task *t)
{
    struct http_exchange *x = t->owner;
    x->pending = false;
    if (x->conn)
        return x;
    http_exchange_free(x);
    err_free(t->error);
    control_task_free(t);
    return NULL;
}

void http_repository_finish(struct control_task *t)
{
    struct http_exchange *x = answered(t);
    if (!x)
        return;
    if (t->error)
        http_exchange_error(x, t->error);
    else
        http_exchange_static(x, 200, HTTP_JSON, NULL, 0);
    control_task_free(t);
}

static void http_repository_finish_index(struct control_task *t)
{
    static const struct pb_json_style style = {.plain_int64 = true};
    struct http_exchange *x = answered(t);
    if (!x)
        return;
    if (t->error) {
        http_exchange_error(x, t->error);
        control_task_free(t);
        return;
    }
    Inference__RepositoryIndexResponse *index =
        describe_index_of(&x->shard->worker->view, t->ready_only, t->places);
    struct strbuf sb = STRBUF_INIT;
    strbuf_putc(&sb, '[');
    for (size_t i = 0; i < index->n_models; i++) {
        if (i)
            strbuf_putc(&sb, ',');
        pb_json_print(&index->models[i]->base, style, &sb);
    }
    strbuf_putc(&sb, ']');
    protobuf_c_message_free_unpacked(&index->base, NULL);
    size_t len = sb.len;
    http_exchange_text(x, 200, HTTP_JSON, strbuf_take(&sb), len);
    control_task_free(t);
}

/* Parses the body as JSON, in memory that lives as long as the task. An empty body has no
 * document. */
static struct err *http_repository_parse(struct http_exchange *x, struct http_message *m,
                                         struct control_task *t, struct http_json *ret)
{
    *ret = (struct http_json){0};
    if (!m->body_len)
        return NULL;
    void *text = m->body;
    struct err *e = NULL;
    if (m->buf)
        t->body = buf_ref(m->buf);
    else
        e = control_task_keep(t, x->conn->account, m->body, m->body_len, HTTP_BODY_PADDING, &text);
    if (e)
        return e;
    return http_json_parse(x->shard, text, m->body_len, ret);
}

static yyjson_val *root_of(const struct http_json *json)
{
    return json->doc ? yyjson_doc_get_root(json->doc) : NULL;
}

struct err *http_repository_index(struct http_exchange *x, struct http_message *m)
{
    struct control_task *t = new_task(x, m, http_repository_finish_index);
    struct http_json json;
    struct err *e = http_repository_parse(x, m, t, &json);
    if (e) {
        control_task_free(t);
        return e;
    }
    yyjson_val *ready = http_json_get(root_of(&json), "ready");
    if (ready && !yyjson_is_bool(ready))
        e = err_new(STATUS_INVALID_ARG, "Invalid value for 'ready': expected a boolean");
    t->ready_only = yyjson_is_true(ready);
    http_json_end(&json);
    if (e) {
        control_task_free(t);
        return e;
    }
    x->pending = true;
    worker_told(x->shard->worker, 0);
    control_task_index(t, x->shard->worker->server->repo);
    return NULL;
}

static struct err *http_repository_add_param(struct control_task *t, const char *name,
                                             size_t name_len, yyjson_val *value)
{
    bool config = name_len == 6 && memcmp(name, "config", 6) == 0;
    bool file = name_len >= sizeof(FILE_PREFIX) - 1 &&
                memcmp(name, FILE_PREFIX, sizeof(FILE_PREFIX) - 1) == 0;
    if (!config && !file)
        return err_new(STATUS_INTERNAL, "unexpected error on creating Triton parameter");
    if (!yyjson_is_str(value))
        return err_new(STATUS_INVALID_ARG, "load parameter '%s' must be a string", name);
    char *copy = NULL;
    size_t skip = config ? 0 : sizeof(FILE_PREFIX) - 1;
    struct err *e = config ? NULL : control_task_name(name + skip, name_len - skip, &copy);
    if (!e)
        e = control_task_param(t, config ? REPO_PARAM_CONFIG : REPO_PARAM_FILE_BASE64, copy,
                               yyjson_get_str(value), yyjson_get_len(value));
    return e;
}

static struct err *read_load(struct control_task *t, yyjson_val *parameters)
{
    if (!parameters)
        return NULL;
    if (!yyjson_is_obj(parameters))
        return err_new(STATUS_INVALID_ARG, "'parameters' must be an object");
    yyjson_obj_iter it;
    yyjson_obj_iter_init(parameters, &it);
    yyjson_val *key;
    struct err *e = NULL;
    while (!e && (key = yyjson_obj_iter_next(&it)))
        e = http_repository_add_param(t, yyjson_get_str(key), yyjson_get_len(key),
                                      yyjson_obj_iter_get_val(key));
    return e;
}

static struct err *read_unload(struct control_task *t, yyjson_val *parameters)
{
    if (parameters && !yyjson_is_obj(parameters))
        return err_new(STATUS_INVALID_ARG, "'parameters' must be an object");
    yyjson_val *dependents = http_json_get(parameters, "unload_dependents");
    if (dependents && !yyjson_is_bool(dependents))
        return err_new(STATUS_INVALID_ARG,
                       "Unable to parse 'unload_dependents': expected a boolean");
    t->dependents = yyjson_is_true(dependents);
    return NULL;
}

struct err *http_repository_control(struct http_exchange *x, struct http_message *m)
{
    struct control_task *t = new_task(x, m, http_repository_finish);
    struct http_json json;
    struct err *e = http_repository_parse(x, m, t, &json);
    if (!e) {
        yyjson_val *parameters = http_json_get(root_of(&json), "parameters");
        e = m->route->unload ? read_unload(t, parameters) : read_load(t, parameters);
        http_json_end(&json);
    }
    if (e) {
        control_task_free(t);
        return e;
    }
    x->pending = true;
    struct repo *r = x->shard->worker->server->repo;
    if (m->route->unload)
        control_task_unload(t, r);
    else
        control_task_load(t, r);
    return NULL;
}
