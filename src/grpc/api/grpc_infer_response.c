#include "grpc/api/grpc_infer_response.h"

#include "base/budget.h"
#include "base/mem.h"
#include "codec/grpc_prefix.h"
#include "codec/infer_pb_write.h"
#include "grpc/api/grpc_infer_request.h"
#include "grpc/grpc_inbox.h"
#include "infer/classify.h"
#include "infer/request.h"
#include "infer/request_text.h"
#include "infer/response.h"
#include "model/config.h"
#include "serve/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The least that an error is charged; enough for most errors. */
#define LITTLE_BYTES ((size_t)4096)

#define FINAL_PARAM "triton_final_response"

/* A reply with its contents in one piece of memory: pieces, prefix and head follow the struct. */
struct encoded {
    struct h2_reply reply;          /* first */
    struct response *response;      /* the struct lies in its arena; NULL = on the heap */
    struct budget_account *account; /* charged for what lies on the heap */
    struct iovec pieces[];
};

static void free_encoded(struct h2_reply *reply)
{
    struct encoded *x = (struct encoded *)reply;
    if (x->response) {
        response_free(x->response);
        return;
    }
    budget_drop(x->account, reply->held);
    mem_free(x);
}

static struct infer_pb_slice slice(const char *s)
{
    return (struct infer_pb_slice){s, strlen(s)};
}

/* The message of an error, cut because it may quote what the client sent. */
static struct infer_pb_slice message_slice(const struct err *e)
{
    return (struct infer_pb_slice){err_message(e), request_text_message(err_message(e))};
}

/* Makes an encoded reply in the response's arena, or on the heap if there is no response. It may
 * wait for its client, so the account is charged.
 * anyway  allow a small one even if there is no room */
static struct encoded *new_encoded(struct response *r, struct budget_account *account, size_t bytes,
                                   bool anyway)
{
    if (r)
        return arena_try_alloc(&r->arena, bytes, 8);
    if (anyway && bytes <= LITTLE_BYTES)
        budget_hold(account, bytes);
    else if (!budget_take(account, bytes))
        return NULL;
    struct encoded *x = mem_try_alloc(bytes, 8);
    if (!x)
        budget_drop(account, bytes);
    return x;
}

/* The memory that waits with the message: that of the response and of the request. Tensors are
 * charged separately. */
static uint64_t held_by(const struct response *r, uint64_t bytes)
{
    return r ? r->arena.held + r->request->arena.held + bytes : bytes;
}

/* account, anyway: for a message without a response. */
static struct err *encode(struct infer_pb_response *pb, struct response *r,
                          struct budget_account *account, bool anyway, struct h2_reply **ret)
{
    struct infer_pb_size size;
    if (infer_pb_write_measure(pb, &size) != INFER_PB_OK)
        return err_new(STATUS_INTERNAL, "the response holds text that is not UTF-8");
    if (size.total > GRPC_INBOX_MAX_BYTES)
        return err_new(STATUS_INVALID_ARG,
                       "Response has byte size %" PRIu64
                       " which exceeds gRPC's byte size limit %u.",
                       size.total, GRPC_INBOX_MAX_BYTES);
    size_t fixed = sizeof(struct encoded) + size.piece_count * sizeof(struct iovec);
    size_t bytes = fixed + GRPC_PREFIX_BYTES + size.head_bytes;
    struct encoded *x = new_encoded(r, account, bytes, anyway);
    if (!x)
        return err_busy("no memory for a response of %" PRIu64 " bytes", size.total);
    uint8_t *prefix = (uint8_t *)x + fixed;
    uint8_t *head = grpc_prefix_put(prefix, false, (uint32_t)size.total);
    uint32_t pieces = infer_pb_write(pb, &size, head, x->pieces);
    x->pieces[0].iov_base = prefix;
    x->pieces[0].iov_len += GRPC_PREFIX_BYTES;
    x->response = r;
    x->account = account;
    x->reply = (struct h2_reply){
        .pieces = x->pieces,
        .piece_count = pieces,
        .left = size.total + GRPC_PREFIX_BYTES,
        .held = held_by(r, r ? size.total : bytes),
        .free_fn = free_encoded,
    };
    *ret = &x->reply;
    return NULL;
}

static struct infer_pb_param *grpc_infer_response_add_param(struct response *r,
                                                            struct infer_pb_param **list,
                                                            struct infer_pb_slice name)
{
    struct infer_pb_param *p = arena_zalloc(&r->arena, sizeof(*p));
    p->name = name;
    p->next = *list;
    *list = p;
    return p;
}

/* Sets the parameters in their order; if a name occurs twice, the last one counts. */
static struct err *set_params(struct response *r, struct infer_pb_param **ret)
{
    for (const struct param *p = r->params.first; p; p = p->next) {
        if (param_find(&r->params, p->name) != p)
            continue;
        struct infer_pb_param *to = grpc_infer_response_add_param(r, ret, slice(p->name));
        ret = &to->next;
        switch (p->type) {
        case PARAM_STRING:
            to->choice = INFER_PB_STRING;
            to->string = (struct infer_pb_slice){p->bytes.data, p->bytes.len};
            break;
        case PARAM_INT:
            to->choice = INFER_PB_INT64;
            to->int64 = p->i;
            break;
        case PARAM_BOOL:
            to->choice = INFER_PB_BOOL;
            to->truth = p->b;
            break;
        case PARAM_DOUBLE:
            to->choice = INFER_PB_DOUBLE;
            to->real = p->d;
            break;
        case PARAM_BYTES:
            return err_new(STATUS_UNSUPPORTED,
                           "Response parameter of type 'TRITONSERVER_PARAMETER_BYTES' is not "
                           "currently supported");
        }
    }
    return NULL;
}

/* Makes the requested classifications, and refuses what cannot be sent. */
static struct err *grpc_infer_response_check_outputs(struct response *r,
                                                     const struct grpc_infer_classes *classes)
{
    bool batched = r->request->config->max_batch_size > 0;
    for (struct tensor_output *o = r->outputs; o; o = o->next) {
        if (o->memory == BUF_MEMORY_GPU && !o->placed)
            return err_new(STATUS_UNSUPPORTED, "output '%s' lies in GPU memory", o->name);
        for (const struct grpc_infer_classes *c = classes; c; c = c->next) {
            if (strcmp(c->output, o->name) != 0)
                continue;
            struct err *e = classify_output(r, o, c->classes, batched,
                                            version_labels(version_of(r->request), o->name));
            if (e)
                return e;
            break;
        }
    }
    return NULL;
}

static struct err *set_outputs(struct response *r, struct infer_pb_response *pb)
{
    pb->outputs = arena_try_alloc(&r->arena, r->output_count * sizeof(*pb->outputs), 8);
    if (!pb->outputs && r->output_count)
        return err_busy("no memory for a response of %u outputs", r->output_count);
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        pb->outputs[pb->output_count++] = (struct infer_pb_output){
            .name = slice(o->name),
            .datatype = slice(datatype_name(o->datatype)),
            .shape = o->shape,
            .rank = o->rank,
            .data = o->placed ? NULL : o->data,
            .data_bytes = o->data && !o->placed ? o->byte_size : 0,
        };
    return NULL;
}

#define VERSION_BYTES 24

/* Writes decimal digits that end at to + VERSION_BYTES. */
static struct infer_pb_slice version_text(int64_t number, char to[VERSION_BYTES])
{
    char *at = to + VERSION_BYTES;
    for (uint64_t n = (uint64_t)number; n || at == to + VERSION_BYTES; n /= 10)
        *--at = (char)('0' + n % 10);
    return (struct infer_pb_slice){at, (size_t)(to + VERSION_BYTES - at)};
}

/* Sets the contents of the message: descriptions and tensors. */
static struct err *grpc_infer_response_fill(struct response *r,
                                            const struct grpc_infer_classes *classes,
                                            struct infer_pb_response *pb,
                                            char version[VERSION_BYTES],
                                            struct infer_pb_param **params)
{
    const struct serve_version *v = version_of(r->request);
    pb->id = slice(r->request->id);
    pb->model_name = slice(r->request->config->name);
    pb->model_version = version_text(v->number, version);
    struct err *e = grpc_infer_response_check_outputs(r, classes);
    if (!e)
        e = set_params(r, params);
    return e ? e : set_outputs(r, pb);
}

struct err *grpc_infer_response(struct response *r, const struct grpc_infer_classes *classes,
                                struct h2_reply **ret)
{
    struct infer_pb_response pb = {0};
    struct infer_pb_param *params = NULL;
    char version[VERSION_BYTES];
    struct err *e = grpc_infer_response_fill(r, classes, &pb, version, &params);
    pb.params = params;
    return e ? e : encode(&pb, r, NULL, false, ret);
}

struct err *grpc_infer_response_streamed(struct response *r,
                                         const struct grpc_infer_classes *classes,
                                         const char *version_as_given, struct h2_reply **ret)
{
    struct infer_pb_response pb = {.streamed = true};
    struct infer_pb_param last = {
        .name = slice(FINAL_PARAM),
        .choice = INFER_PB_BOOL,
        .bits = (r->flags & RESPONSE_FINAL) != 0,
    };
    char version[VERSION_BYTES];
    struct infer_pb_param *params = NULL;
    struct err *e = NULL;
    if (r->error || r->empty) {
        pb.id = slice(r->request->id);
        pb.model_name = slice(r->request->config->name);
        if (version_as_given)
            pb.model_version = slice(version_as_given);
        if (r->error)
            pb.error_message = message_slice(r->error);
    } else {
        e = grpc_infer_response_fill(r, classes, &pb, version, &params);
    }
    if (e)
        return e;
    struct infer_pb_param **end = &params; /* if a name has two values, the later one counts */
    while (*end)
        end = &(*end)->next;
    *end = &last;
    pb.params = params;
    return encode(&pb, r, NULL, false, ret);
}

struct h2_reply *grpc_infer_response_error(const struct err *e, struct infer_pb_slice id,
                                           struct budget_account *account, bool anyway)
{
    struct infer_pb_response pb = {.streamed = true, .error_message = message_slice(e), .id = id};
    if (id.len > REQUEST_TEXT_ID_BYTES)
        pb.id = (struct infer_pb_slice){0};
    struct h2_reply *reply = NULL;
    struct err *failed = encode(&pb, NULL, account, anyway, &reply);
    if (failed) {
        /* the error's own text is not UTF-8, or there is no room: try to send that error instead */
        pb.error_message = message_slice(failed);
        err_free(encode(&pb, NULL, account, anyway, &reply));
        err_free(failed);
    }
    return reply;
}
