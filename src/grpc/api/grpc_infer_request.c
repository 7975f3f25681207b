#include "grpc/api/grpc_infer_request.h"

#include "base/strbuf.h"
#include "grpc/api/grpc_regions.h"
#include "infer/request_text.h"
#include "model/config.h"
#include "model/datatype.h"
#include "net/forward.h"
#include "os/pool.h"
#include "serve/table.h"
#include "serve/version.h"
#include "server/control/describe.h"

#include <string.h>

#define ALIGN ((size_t)64)
/* Copied tensors of a request lie in its arena if they have at most this many bytes together,
 * else in a pool buffer. */
#define ARENA_BYTES ((size_t)4096)

static bool grpc_infer_request_is(struct infer_pb_slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

/* Checks a text that becomes a C string: a zero byte in it would hide what follows. */
static struct err *check_text(struct infer_pb_slice s, const char *what)
{
    if (s.len && memchr(s.data, 0, s.len))
        return err_new(STATUS_INVALID_ARG, "%s '%.*s...' holds a zero byte", what,
                       (int)strnlen(s.data, s.len), s.data);
    return NULL;
}

static struct err *check_param_texts(const struct infer_pb_param *list)
{
    struct err *e = NULL;
    for (const struct infer_pb_param *p = list; p && !e; p = p->next) {
        e = check_text(p->name, "parameter");
        if (!e)
            e = check_text(p->string, grpc_infer_request_is(p->name, "sequence_id")
                                          ? "sequence id"
                                          : "parameter value");
    }
    return e;
}

static struct err *check_tensor_texts(const struct infer_pb_tensor *list, const char *what)
{
    struct err *e = NULL;
    for (const struct infer_pb_tensor *t = list; t && !e; t = t->next) {
        e = check_text(t->name, what);
        if (!e)
            e = check_text(t->datatype, "datatype");
        if (!e)
            e = check_param_texts(t->params);
    }
    return e;
}

/* Checks every text of a message. */
static struct err *check_texts(const struct infer_pb_request *pb)
{
    struct err *e = check_text(pb->model_name, "model");
    if (!e)
        e = check_text(pb->model_version, "model version");
    if (!e)
        e = check_text(pb->id, "request id");
    if (!e)
        e = check_param_texts(pb->params);
    if (!e)
        e = check_tensor_texts(pb->inputs, "input");
    return e ? e : check_tensor_texts(pb->outputs, "output");
}

static struct err *grpc_infer_request_wrong_type(const struct infer_pb_param *p,
                                                 const char *expected)
{
    return err_new(STATUS_INVALID_ARG, "invalid value type for '%.*s' parameter, expected %s.",
                   (int)p->name.len, p->name.data, expected);
}

static struct err *set_sequence_id(struct request *r, const struct infer_pb_param *p)
{
    if (p->choice == INFER_PB_INT64) {
        r->correlation_id = p->bits;
        return NULL;
    }
    if (p->choice != INFER_PB_STRING)
        return grpc_infer_request_wrong_type(p, "int64_param or string_param");
    return request_text_sequence(r, p->string.data, p->string.len);
}

static struct err *grpc_infer_request_set_flag(struct request *r, const struct infer_pb_param *p,
                                               uint32_t flag)
{
    if (p->choice != INFER_PB_BOOL)
        return grpc_infer_request_wrong_type(p, "bool_param");
    if (p->truth)
        r->flags |= flag;
    return NULL;
}

static struct err *set_priority(struct request *r, const struct infer_pb_param *p)
{
    if (p->choice != INFER_PB_INT64 && p->choice != INFER_PB_UINT64)
        return grpc_infer_request_wrong_type(p, "int64_param or uint64_param");
    if (p->choice == INFER_PB_INT64 && p->int64 < 0)
        return err_new(STATUS_INVALID_ARG, "invalid value for 'priority', expected value >= 0.");
    r->priority = p->bits;
    return NULL;
}

static struct err *set_timeout(struct request *r, const struct infer_pb_param *p)
{
    if (p->choice != INFER_PB_INT64)
        return grpc_infer_request_wrong_type(p, "int64_param");
    r->timeout_us = p->int64 > 0 ? p->bits : 0;
    return NULL;
}

static struct err *set_reserved(const struct infer_pb_param *p, struct grpc_infer_options *options)
{
    if (!grpc_infer_request_is(p->name, "triton_enable_empty_final_response"))
        return err_new(
            STATUS_INVALID_ARG,
            "parameter keys starting with 'triton_' are reserved for Triton usage. Only the "
            "following keys starting with 'triton_' are allowed: "
            "triton_enable_empty_final_response");
    if (p->choice != INFER_PB_BOOL)
        return grpc_infer_request_wrong_type(p, "bool_param");
    options->empty_final = p->truth;
    return NULL;
}

/* Adds a parameter that the server does not know; it is for the backend. */
static struct err *grpc_infer_request_add_param(struct request *r, const struct infer_pb_param *p)
{
    bool is_string = p->choice == INFER_PB_STRING;
    struct err *e =
        request_text_room(r, sizeof(struct param) + p->name.len + (is_string ? p->string.len : 0));
    if (e)
        return e;
    switch (p->choice) {
    case INFER_PB_INT64:
        param_add(&r->params, &r->arena, p->name.data, p->name.len, PARAM_INT)->i = p->int64;
        return NULL;
    case INFER_PB_BOOL:
        param_add(&r->params, &r->arena, p->name.data, p->name.len, PARAM_BOOL)->b = p->truth;
        return NULL;
    case INFER_PB_DOUBLE:
        param_add(&r->params, &r->arena, p->name.data, p->name.len, PARAM_DOUBLE)->d = p->real;
        return NULL;
    case INFER_PB_STRING:
        param_add_string(&r->params, &r->arena, p->name.data, p->name.len, p->string.data,
                         p->string.len);
        return NULL;
    case INFER_PB_NONE:
    case INFER_PB_UINT64:
        break;
    }
    return grpc_infer_request_wrong_type(p, "int64_param, bool_param, or string_param");
}

static struct err *set_param(struct request *r, const struct infer_pb_param *p,
                             struct grpc_infer_options *options)
{
    if (grpc_infer_request_is(p->name, "sequence_id"))
        return set_sequence_id(r, p);
    if (grpc_infer_request_is(p->name, "sequence_start"))
        return grpc_infer_request_set_flag(r, p, REQUEST_SEQUENCE_START);
    if (grpc_infer_request_is(p->name, "sequence_end"))
        return grpc_infer_request_set_flag(r, p, REQUEST_SEQUENCE_END);
    if (grpc_infer_request_is(p->name, "priority"))
        return set_priority(r, p);
    if (grpc_infer_request_is(p->name, "timeout"))
        return set_timeout(r, p);
    if (p->name.len >= 7 && memcmp(p->name.data, "triton_", 7) == 0)
        return set_reserved(p, options);
    return grpc_infer_request_add_param(r, p);
}

static struct err *set_metadata(struct request *r, const struct infer_pb_request *pb,
                                struct grpc_infer_options *options)
{
    struct err *e = request_text_id(r, pb->id.data, pb->id.len);
    for (const struct infer_pb_param *p = pb->params; p && !e; p = p->next)
        e = set_param(r, p, options);
    return e;
}

/* The source of an input's bytes. */
struct source {
    const struct infer_pb_part *raw;       /* NULL: use typed contents */
    const struct infer_pb_contents *typed; /* also NULL: no contents, zero bytes */
    struct tensor_piece shared;            /* in a region; without data: none of the request's */
    enum infer_pb_content kind;
    uint64_t bytes;
};

/* The kind of contents for a datatype; CONTENTS if there is none. */
static enum infer_pb_content content_of(enum datatype t)
{
    static const uint8_t kinds[DATATYPE_COUNT] = {
        [DATATYPE_BOOL] = INFER_PB_BOOLS,     [DATATYPE_INT8] = INFER_PB_INTS,
        [DATATYPE_INT16] = INFER_PB_INTS,     [DATATYPE_INT32] = INFER_PB_INTS,
        [DATATYPE_INT64] = INFER_PB_INT64S,   [DATATYPE_UINT8] = INFER_PB_UINTS,
        [DATATYPE_UINT16] = INFER_PB_UINTS,   [DATATYPE_UINT32] = INFER_PB_UINTS,
        [DATATYPE_UINT64] = INFER_PB_UINT64S, [DATATYPE_FP32] = INFER_PB_FP32S,
        [DATATYPE_FP64] = INFER_PB_FP64S,     [DATATYPE_BYTES] = INFER_PB_STRINGS,
    };
    return kinds[t] ? (enum infer_pb_content)kinds[t] : INFER_PB_CONTENTS;
}

/* The datatype that messages show for a kind of contents. */
static enum datatype datatype_of(enum infer_pb_content kind)
{
    static const uint8_t types[INFER_PB_CONTENTS] = {
        [INFER_PB_BOOLS] = DATATYPE_BOOL,     [INFER_PB_INTS] = DATATYPE_INT32,
        [INFER_PB_INT64S] = DATATYPE_INT64,   [INFER_PB_UINTS] = DATATYPE_UINT32,
        [INFER_PB_UINT64S] = DATATYPE_UINT64, [INFER_PB_FP32S] = DATATYPE_FP32,
        [INFER_PB_FP64S] = DATATYPE_FP64,     [INFER_PB_STRINGS] = DATATYPE_BYTES,
    };
    return (enum datatype)types[kind];
}

static struct err *typed_source(const struct request *r, const struct infer_pb_tensor *t,
                                enum datatype type, struct source *ret)
{
    for (unsigned kind = INFER_PB_BOOLS; kind < INFER_PB_CONTENTS; kind++) {
        if (!t->contents->count[kind])
            continue;
        const char *model = r->config->name;
        int len = (int)t->name.len;
        if (ret->bytes)
            return err_new(STATUS_INVALID_ARG,
                           "unexpected explicit tensor data for input tensor '%.*s' for model "
                           "'%s', binary data was already "
                           "supplied.",
                           len, t->name.data, model);
        if (content_of(type) != kind)
            return err_new(STATUS_INVALID_ARG,
                           "unexpected explicit tensor data for input tensor '%.*s' for model '%s' "
                           "of type '%s', expected "
                           "datatype '%s'",
                           len, t->name.data, model, datatype_name(datatype_of(kind)),
                           datatype_name(type));
        ret->typed = t->contents;
        ret->kind = kind;
        ret->bytes = infer_pb_content_bytes(t->contents, kind, datatype_bytes(type));
    }
    return NULL;
}

static const struct infer_pb_param *find_param(const struct infer_pb_tensor *t, const char *name)
{
    for (const struct infer_pb_param *p = t->params; p; p = p->next)
        if (grpc_infer_request_is(p->name, name))
            return p;
    return NULL;
}

static struct err *no_content(const struct request *r, const struct infer_pb_tensor *t)
{
    return err_new(STATUS_INVALID_ARG,
                   "unexpected 'content' provided when using shared memory for input tensor '%.*s' "
                   "for model '%s'",
                   (int)t->name.len, t->name.data ? t->name.data : "", r->config->name);
}

/* Finds the source of an input; *raw is the next raw contents of the message. */
static struct err *
grpc_infer_request_find_source(struct request *r, const struct infer_pb_request *pb,
                               const struct infer_pb_tensor *t, struct regions *regions,
                               const struct infer_pb_part **raw, struct source *ret)
{
    struct regions_part part;
    bool shared;
    *ret = (struct source){0};
    struct err *e = grpc_regions_part(t, &part, &shared);
    if (e)
        return e;
    if (shared && t->contents)
        return no_content(r, t);
    if (shared) {
        ret->bytes = part.byte_size;
        return regions_lend_input(regions, r, &part, &ret->shared);
    }
    if (t->contents && pb->raw_count)
        return err_new(STATUS_INVALID_ARG,
                       "contents field must not be specified when using raw_input_contents for "
                       "'%.*s' for model '%s'",
                       (int)t->name.len, t->name.data, r->config->name);
    if (t->contents)
        return typed_source(r, t, datatype_parse(t->datatype.data, t->datatype.len), ret);
    if (!*raw)
        return err_new(STATUS_INVALID_ARG,
                       "unable to find data for input tensor '%.*s' for model '%s' in request.",
                       (int)t->name.len, t->name.data ? t->name.data : "", r->config->name);
    ret->raw = *raw;
    ret->bytes = (*raw)->bytes.len;
    *raw = (*raw)->next;
    return NULL;
}

static uint64_t grpc_infer_request_aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

/* Makes room for every tensor that must be copied, each aligned to 64. */
static struct err *grpc_infer_request_make_room(struct request *r, uint64_t bytes, uint8_t **ret)
{
    if (bytes == 0)
        return NULL;
    if (bytes > ARENA_BYTES) {
        struct err *e = pool_buf(bytes, &r->body);
        if (!e)
            *ret = r->body->data;
        return e;
    }
    *ret = arena_try_alloc(&r->arena, bytes, ALIGN);
    return *ret ? NULL : err_busy("no memory for the request's tensors");
}

/* Where the bytes of the inputs come from, one after the other, in the arena.
 * in_place   raw ones stay where they are
 * ret_bytes  of those that have to be copied */
static struct err *find_sources(struct request *r, const struct infer_pb_request *pb,
                                struct regions *regions, bool in_place, struct source **ret,
                                uint64_t *ret_bytes)
{
    const struct infer_pb_part *raw = pb->raws;
    struct source *from = arena_try_alloc(&r->arena, pb->input_count * sizeof(*from), 8);
    if (!from && pb->input_count)
        return err_busy("no memory for a request of %u inputs", pb->input_count);
    *ret = from;
    *ret_bytes = 0;
    for (const struct infer_pb_tensor *t = pb->inputs; t; t = t->next, from++) {
        struct err *e = grpc_infer_request_find_source(r, pb, t, regions, &raw, from);
        if (e)
            return e;
        if (!from->shared.data && !(from->raw && in_place))
            *ret_bytes += grpc_infer_request_aligned(from->bytes);
    }
    return NULL;
}

static struct err *grpc_infer_request_add_inputs(struct request *r,
                                                 const struct infer_pb_request *pb,
                                                 struct regions *regions, bool in_place)
{
    uint8_t *room = NULL;
    uint64_t bytes;
    struct source *from;
    struct err *e = find_sources(r, pb, regions, in_place, &from, &bytes);
    if (!e)
        e = grpc_infer_request_make_room(r, bytes, &room);
    if (e)
        return e;
    for (const struct infer_pb_tensor *t = pb->inputs; t; t = t->next, from++) {
        enum datatype type = datatype_parse(t->datatype.data, t->datatype.len);
        struct tensor_piece piece = {.data = "", .size = from->bytes, .memory = BUF_MEMORY_CPU};
        if (from->shared.data) {
            piece = from->shared;
        } else if (from->raw && in_place) {
            piece.data = from->raw->bytes.data;
        } else if (from->bytes) {
            if (from->raw)
                memcpy(room, from->raw->bytes.data, from->bytes);
            else
                infer_pb_content_write(from->typed, from->kind, datatype_bytes(type), room);
            piece.data = room;
            room += grpc_infer_request_aligned(from->bytes);
        }
        struct tensor_input *in =
            request_add_input(r, t->name.data, t->name.len, type, t->shape, t->rank, &piece, 1);
        if (in)
            in->shared = from->shared.data;
    }
    return NULL;
}

static struct err *add_classes(struct request *r, const struct infer_pb_tensor *t,
                               const struct infer_pb_param *classes,
                               struct grpc_infer_classes **list)
{
    if (classes->choice != INFER_PB_INT64)
        return err_new(STATUS_INVALID_ARG,
                       "invalid value type for 'classification' parameter, expected int64_param");
    if (classes->int64 <= 0)
        return err_new(STATUS_INVALID_ARG,
                       "invalid value for 'classification' parameter, expected >= 0");
    struct grpc_infer_classes *c = arena_alloc(&r->arena, sizeof(*c));
    *c = (struct grpc_infer_classes){
        .next = *list,
        .output = arena_strndup(&r->arena, t->name.data, t->name.len),
        .classes = classes->bits,
    };
    *list = c;
    return NULL;
}

static void add_outputs(struct request *r, const struct infer_pb_request *pb)
{
    for (const struct infer_pb_tensor *t = pb->outputs; t; t = t->next)
        request_add_output(r, t->name.data, t->name.len);
}

/* How, and where, an output is wanted. */
static struct err *add_wish(struct request *r, const struct infer_pb_tensor *t,
                            struct grpc_infer_options *options)
{
    struct regions_part part;
    bool shared;
    struct err *e = grpc_regions_part(t, &part, &shared);
    const struct infer_pb_param *classes = find_param(t, "classification");
    if (!e && classes)
        e = add_classes(r, t, classes, &options->classes);
    if (e || !shared)
        return e;
    if (classes)
        return err_new(STATUS_INVALID_ARG,
                       "output can't set both 'shared_memory_region' and 'classification'");
    return regions_lend_output(options->regions, r, &part,
                               arena_strndup(&r->arena, t->name.data, t->name.len));
}

static struct err *add_wishes(struct request *r, const struct infer_pb_request *pb,
                              struct grpc_infer_options *options)
{
    struct err *e = NULL;
    for (const struct infer_pb_tensor *t = pb->outputs; t && !e; t = t->next)
        if (t->params)
            e = add_wish(r, t, options);
    return e;
}

struct err *grpc_infer_request(struct table_view *view, struct loop *loop,
                               const struct infer_pb_request *pb, struct buf **buf,
                               request_respond_fn respond, void *owner,
                               struct grpc_infer_options *options, struct request **ret)
{
    int64_t number;
    struct serve_version *version;
    struct err *e = check_texts(pb);
    if (!e)
        e = describe_parse_version(pb->model_version.data, pb->model_version.len, &number);
    if (!e)
        e = table_find(view, pb->model_name.data, pb->model_name.len, number, &version);
    if (e)
        return e;
    options->decoupled = version->config->decoupled;
    options->model = version->front_model;
    if (options->one_response && options->decoupled) {
        version_unpin(version);
        return err_new(STATUS_UNSUPPORTED,
                       "ModelInfer RPC doesn't support models with decoupled transaction policy");
    }
    struct request *r = request_new(&version->target, loop, respond, owner);
    request_account(r, options->account);
    r->times.start = loop_now(loop);
    add_outputs(r, pb);
    e = set_metadata(r, pb, options);
    if (!e)
        e = grpc_infer_request_add_inputs(r, pb, options->regions, *buf != NULL);
    if (!e)
        e = add_wishes(r, pb, options);
    if (!e && options->forward)
        e = forward_add(options->forward, options->headers->data, options->headers->len, r);
    bool taken = !e && pb->raw_count && *buf;
    if (taken) {
        r->body = *buf;
        *buf = NULL;
    }
    if (!e)
        e = request_prepare(r);
    if (e) {
        if (taken) { /* the caller still reads pb, which lies in it */
            *buf = r->body;
            r->body = NULL;
        }
        request_release(r);
        return e;
    }
    *ret = r;
    return NULL;
}
