#include "grpc/api/grpc_repository.h"

#include "base/mem.h"
#include "codec/pb_utf8.h"
#include "codec/pb_wire.h"
#include "grpc/api/grpc_control.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "net/control_task.h"
#include "server/control/describe.h"
#include "server/worker.h"

#include <string.h>

#define FILE_PREFIX "file:"

/* Fields of a ModelRepositoryParameter. */
enum choice {
    CHOICE_NONE = 0,
    CHOICE_BOOL = 1,
    CHOICE_INT64 = 2,
    CHOICE_STRING = 3,
    CHOICE_BYTES = 4,
};

/* One entry of the parameter map. */
struct parameter {
    const char *key;
    size_t key_len;
    enum choice choice;
    uint64_t number;
    const void *data;
    size_t len;
};

/* Applies one parameter to a task. */
typedef struct err *param_fn(struct control_task *t, const struct parameter *p);

static bool text(const struct pb_wire_field *f, const void **ret, size_t *ret_len)
{
    if (f->type != PB_WIRE_BYTES || !pb_utf8_valid(f->data, f->len))
        return false;
    *ret = f->data;
    *ret_len = f->len;
    return true;
}

static bool grpc_repository_read_value(const struct pb_wire_field *field, struct parameter *p)
{
    struct pb_wire w = pb_wire_of(field->data, field->len);
    struct pb_wire_field f;
    enum pb_wire_result r;
    while ((r = pb_wire_next(&w, &f)) == PB_WIRE_FIELD) {
        if (f.number < CHOICE_BOOL || f.number > CHOICE_BYTES)
            continue;
        bool bytes = f.number >= CHOICE_STRING;
        if (f.type != (bytes ? PB_WIRE_BYTES : PB_WIRE_VARINT))
            return false;
        p->choice = (enum choice)f.number;
        p->number = f.value;
        p->data = f.data;
        p->len = f.len;
        if (f.number == CHOICE_STRING && !pb_utf8_valid(f.data, f.len))
            return false;
    }
    return r == PB_WIRE_END;
}

/* Reads the next entry of the map. FIELD: p is set. */
static enum pb_wire_result next_parameter(struct pb_wire *message, struct parameter *p)
{
    struct pb_wire_field f;
    enum pb_wire_result r;
    do {
        r = pb_wire_next(message, &f);
    } while (r == PB_WIRE_FIELD && f.number != 3);
    if (r != PB_WIRE_FIELD)
        return r;
    if (f.type != PB_WIRE_BYTES)
        return PB_WIRE_BAD;
    *p = (struct parameter){.key = ""};
    struct pb_wire w = pb_wire_of(f.data, f.len);
    const void *key = "";
    while ((r = pb_wire_next(&w, &f)) == PB_WIRE_FIELD) {
        if (f.number == 1 && !text(&f, &key, &p->key_len))
            return PB_WIRE_BAD;
        if (f.number == 2 && (f.type != PB_WIRE_BYTES || !grpc_repository_read_value(&f, p)))
            return PB_WIRE_BAD;
    }
    p->key = key;
    return r == PB_WIRE_END ? PB_WIRE_FIELD : PB_WIRE_BAD;
}

static bool is_key(const struct parameter *p, const char *key)
{
    return p->key_len == strlen(key) && memcmp(p->key, key, p->key_len) == 0;
}

static struct err *grpc_repository_wrong_type(const struct parameter *p, const char *what,
                                              const char *expected)
{
    return err_new(STATUS_INVALID_ARG, "invalid value type for %s '%.*s', expected %s.", what,
                   (int)p->key_len, p->key, expected);
}

static struct err *load_param(struct control_task *t, const struct parameter *p)
{
    size_t prefix = sizeof(FILE_PREFIX) - 1;
    if (is_key(p, "config")) {
        if (p->choice != CHOICE_STRING)
            return grpc_repository_wrong_type(p, "load parameter", "string_param");
        return control_task_param(t, REPO_PARAM_CONFIG, NULL, p->data, p->len);
    }
    if (p->key_len < prefix || memcmp(p->key, FILE_PREFIX, prefix) != 0)
        return err_new(STATUS_INVALID_ARG, "unrecognized load parameter '%.*s'.", (int)p->key_len,
                       p->key);
    if (p->choice != CHOICE_BYTES)
        return grpc_repository_wrong_type(p, "load parameter", "bytes_param");
    char *name;
    struct err *e = control_task_name(p->key + prefix, p->key_len - prefix, &name);
    if (!e)
        e = control_task_param(t, REPO_PARAM_FILE, name, p->data, p->len);
    return e;
}

static struct err *unload_param(struct control_task *t, const struct parameter *p)
{
    if (!is_key(p, "unload_dependents"))
        return NULL;
    if (p->choice != CHOICE_BOOL)
        return grpc_repository_wrong_type(p, "unload parameter", "bool_param");
    t->dependents = p->number != 0;
    return NULL;
}

/* Parses the request. In all three messages the first field names a repository. The second is
 * `ready` in an index request, else the model. Returns false with *ret_error, or if it is not
 * such a message. */
static bool read_request(struct control_task *t, const uint8_t *data, size_t len, param_fn *param,
                         struct err **ret_error)
{
    struct pb_wire w = pb_wire_of(data, len);
    struct pb_wire_field f;
    enum pb_wire_result r;
    const void *repository = NULL;
    const void *model = NULL;
    size_t repository_len = 0;
    size_t model_len = 0;
    while ((r = pb_wire_next(&w, &f)) == PB_WIRE_FIELD) {
        if (f.number == 1 && !text(&f, &repository, &repository_len))
            return false;
        if (f.number == 2 && f.type == PB_WIRE_VARINT)
            t->ready_only = f.value != 0;
        else if (f.number == 2 && !text(&f, &model, &model_len))
            return false;
    }
    if (r != PB_WIRE_END)
        return false;
    struct err *e = control_task_name(repository, repository_len, &t->repository);
    if (!e)
        e = control_task_name(model, model_len, &t->model);
    struct parameter p;
    w = pb_wire_of(data, len);
    while (!e && param && (r = next_parameter(&w, &p)) == PB_WIRE_FIELD)
        e = param(t, &p);
    *ret_error = e;
    return !e && r == PB_WIRE_END;
}

static struct worker *grpc_repository_worker(const struct grpc_stream *s)
{
    return s->conn->home->worker;
}

void grpc_repository_finish(struct control_task *t, const ProtobufCMessage *m)
{
    struct grpc_stream *s = t->owner;
    if (s->conn)
        grpc_control_answer(s, t->error, m);
    else
        err_free(t->error);
    grpc_stream_release(s, &s->call);
    control_task_free(t);
}

static void finish_load(struct control_task *t)
{
    Inference__RepositoryModelLoadResponse m = INFERENCE__REPOSITORY_MODEL_LOAD_RESPONSE__INIT;
    grpc_repository_finish(t, &m.base);
}

static void finish_unload(struct control_task *t)
{
    Inference__RepositoryModelUnloadResponse m = INFERENCE__REPOSITORY_MODEL_UNLOAD_RESPONSE__INIT;
    grpc_repository_finish(t, &m.base);
}

static void grpc_repository_finish_index(struct control_task *t)
{
    const struct grpc_stream *s = t->owner;
    Inference__RepositoryIndexResponse *m = NULL;
    if (s->conn && !t->error)
        m = describe_index_of(&grpc_repository_worker(s)->view, t->ready_only, t->places);
    grpc_repository_finish(t, m ? &m->base : NULL);
    if (m)
        protobuf_c_message_free_unpacked(&m->base, NULL);
}

/* Makes the task of a call, which keeps the message. If the request is invalid, the call is
 * ended and NULL is returned. */
static struct control_task *grpc_repository_begin(struct grpc_stream *s, const uint8_t *data,
                                                  size_t len, struct buf **buf,
                                                  void (*fn)(struct control_task *t),
                                                  param_fn *param)
{
    struct control_task *t = control_task_new(grpc_repository_worker(s)->loop, fn, s);
    struct err *e = NULL;
    if (*buf) {
        t->body = *buf;
        *buf = NULL;
    } else if (len) {
        void *copy = NULL;
        e = control_task_keep(t, s->conn->account, data, len, 0, &copy);
        data = copy;
    }
    if (!e && read_request(t, data, len, param, &e)) {
        grpc_stream_hold(s, &s->call);
        return t;
    }
    control_task_free(t);
    if (e)
        grpc_answer_fail(s, e);
    else
        grpc_answer_end(s, GRPC_ANSWER_INTERNAL, "Unable to parse request");
    return NULL;
}

void grpc_repository_index(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    struct control_task *t =
        grpc_repository_begin(s, data, len, buf, grpc_repository_finish_index, NULL);
    if (!t)
        return;
    worker_told(grpc_repository_worker(s), 0);
    control_task_index(t, grpc_repository_worker(s)->server->repo);
}

void grpc_repository_load(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    struct control_task *t = grpc_repository_begin(s, data, len, buf, finish_load, load_param);
    if (t)
        control_task_load(t, grpc_repository_worker(s)->server->repo);
}

void grpc_repository_unload(struct grpc_stream *s, const uint8_t *data, size_t len,
                            struct buf **buf)
{
    struct control_task *t = grpc_repository_begin(s, data, len, buf, finish_unload, unload_param);
    if (t)
        control_task_unload(t, grpc_repository_worker(s)->server->repo);
}
