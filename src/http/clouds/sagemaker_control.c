#include "http/clouds/sagemaker_control.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "http/api/http_json.h"
#include "http/clouds/sagemaker_models.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "net/control_task.h"
#include "server/server.h"

#include <string.h>

/* A load or an unload under way. */
struct sagemaker_change {
    struct http_exchange *x;
    struct sagemaker_models *all;
    char name[SAGEMAKER_MODELS_NAME_BYTES];
};

/* The list knows the outcome by now. */
static void answer_change(struct control_task *t)
{
    struct sagemaker_change *change = t->owner;
    struct http_exchange *x = change->x;
    x->pending = false;
    if (!x->conn) {
        http_exchange_free(x);
        err_free(t->error);
    } else if (t->error) {
        http_exchange_error(x, t->error);
    } else {
        http_exchange_static(x, 200, HTTP_JSON, NULL, 0);
    }
    mem_free(change);
    control_task_free(t);
}

static void sagemaker_control_finish_load(struct control_task *t)
{
    struct sagemaker_change *change = t->owner;
    sagemaker_models_loaded(change->all, change->name, !t->error);
    answer_change(t);
}

static void sagemaker_control_finish_unload(struct control_task *t)
{
    struct sagemaker_change *change = t->owner;
    sagemaker_models_left(change->all, change->name, !t->error);
    answer_change(t);
}

/* name  len bytes, fewer than SAGEMAKER_MODELS_NAME_BYTES */
static struct control_task *sagemaker_control_begin(struct http_exchange *x,
                                                    struct sagemaker_models *all, const char *name,
                                                    size_t len, const char *target,
                                                    void (*finish)(struct control_task *t))
{
    struct sagemaker_change *change = MEM_NEW(struct sagemaker_change);
    change->x = x;
    change->all = all;
    memcpy(change->name, name, len);
    struct control_task *t = control_task_new(x->shard->worker->loop, finish, change);
    t->model = mem_strdup(target);
    t->repository = mem_strdup("");
    x->pending = true;
    return t;
}

/* A member that is a string; "" if there is none. */
static struct err *read_string(yyjson_val *v, const char *name, const char **ret)
{
    *ret = "";
    if (!v)
        return NULL;
    if (!yyjson_is_str(v))
        return err_new(STATUS_INVALID_ARG, "'%s': expected a string", name);
    *ret = yyjson_get_str(v);
    return http_json_whole(name, *ret, yyjson_get_len(v));
}

static struct err *sagemaker_control_begin_load(struct http_exchange *x,
                                                const struct http_message *m,
                                                struct sagemaker_models *all, yyjson_val *root)
{
    const char *name, *url;
    const char *target = http1_header(m->head, "X-Amzn-SageMaker-Target-Model", NULL);
    struct err *e = read_string(http_json_get(root, "model_name"), "model_name", &name);
    if (!e)
        e = read_string(http_json_get(root, "url"), "url", &url);
    if (e)
        return e;
    target = target ? target : name;
    e = sagemaker_models_add(all, name, target, url);
    if (e)
        return e;
    LOG_INFO("Loading SageMaker TargetModel: %s", target);
    struct control_task *t =
        sagemaker_control_begin(x, all, name, strlen(name), target, sagemaker_control_finish_load);
    t->archive = mem_strdup(url);
    control_task_load(t, x->shard->worker->server->repo);
    return NULL;
}

static struct err *check_explicit(const struct http_exchange *x)
{
    return x->shard->worker->server->options->control_mode == OPTIONS_CONTROL_EXPLICIT
               ? NULL
               : err_new(STATUS_UNSUPPORTED,
                         "repository registration is not allowed if model control mode is not "
                         "EXPLICIT");
}

struct err *sagemaker_control_load(struct http_exchange *x, struct http_message *m,
                                   struct sagemaker_models *all)
{
    struct http_json json;
    struct err *e = check_explicit(x);
    if (!e)
        e = http_json_parse_body(x->shard, m, &json);
    if (e)
        return e;
    e = sagemaker_control_begin_load(x, m, all, yyjson_doc_get_root(json.doc));
    http_json_end(&json);
    return e;
}

struct err *sagemaker_control_unload(struct http_exchange *x, const struct http_message *m,
                                     struct sagemaker_models *all)
{
    const char *name = http_message_part(m, m->route->model);
    size_t len = m->route->model.len;
    char target[SAGEMAKER_MODELS_NAME_BYTES];
    if (!sagemaker_models_target(all, name, len, true, target))
        return err_new(STATUS_NOT_FOUND, "model '%.*s' is not loaded", (int)len, name);
    LOG_INFO("Unloading SageMaker TargetModel: %s", target);
    struct control_task *t =
        sagemaker_control_begin(x, all, name, len, target, sagemaker_control_finish_unload);
    t->dependents = true;
    control_task_unload(t, x->shard->worker->server->repo);
    return NULL;
}
