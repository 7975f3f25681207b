#include "grpc/api/grpc_control.h"

#include "base/budget.h"
#include "base/mem.h"
#include "codec/grpc_prefix.h"
#include "codec/pb_utf8.h"
#include "codec/pb_wire.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "model/config.h"
#include "net/turns.h"
#include "proto/health.pb-c.h"
#include "server/control/describe.h"
#include "server/server.h"
#include "server/server_metadata.h"
#include "server/worker.h"

#include <string.h>

/* A reply with its bytes in one piece of memory. */
struct packed {
    struct h2_reply reply; /* first */
    struct iovec piece;
    /* lives longer: replies are freed with their stream at the latest, or with the connection's
     * output; only messages with tensors are lent to another thread (grpc_pack.h) */
    struct grpc_conn *conn;
    /* true: allowed by budget_spare because there was no room; false: charged to the
     * connection's account */
    bool spared;
    uint8_t bytes[];
};

static void free_packed(struct h2_reply *r)
{
    struct packed *p = (struct packed *)r;
    if (p->spared)
        budget_unspare(r->held);
    else
        budget_drop(p->conn->account, r->held);
    p->conn->unread -= r->held;
    mem_free(p);
}

/* Makes room for an answer, which may wait for its client. */
static struct err *new_packed(struct grpc_conn *c, size_t len, struct packed **ret)
{
    size_t bytes = sizeof(struct packed) + GRPC_PREFIX_BYTES + len;
    bool room = budget_take(c->account, bytes);
    if (!room && (c->unread > TURNS_UNREAD || !budget_spare(bytes)))
        return budget_busy(0, "no room for an answer of %zu bytes", len);
    *ret = mem_alloc(bytes);
    **ret = (struct packed){
        .conn = c,
        .spared = !room,
        .reply = {.piece_count = 1, .held = bytes, .free_fn = free_packed},
    };
    c->unread += bytes;
    turns_told(&c->told, bytes);
    worker_told(c->home->worker, bytes);
    return NULL;
}

/* True if every string of a message is UTF-8, which protobuf-c does not check. */
static bool grpc_control_valid_strings(const ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        const char *base = (const char *)m;
        if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
            *(const uint32_t *)(base + f->quantifier_offset) != f->id)
            continue;
        bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
        size_t count = repeated ? *(const size_t *)(base + f->quantifier_offset) : 1;
        void *const *values = repeated ? *(void *const *const *)(base + f->offset)
                                       : (void *const *)(base + f->offset);
        for (size_t k = 0; k < count; k++) {
            if (!values[k])
                continue;
            bool ok = f->type == PROTOBUF_C_TYPE_STRING
                          ? pb_utf8_valid(values[k], strlen(values[k]))
                          : grpc_control_valid_strings(values[k]);
            if (!ok)
                return false;
        }
    }
    return true;
}

/* True if a string of a message holds a zero byte, which would hide what follows it: protobuf-c
 * makes C strings. The message was unpacked, so its fields are whole. */
static bool holds_zero(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len)
{
    struct pb_wire w = pb_wire_of(data, len);
    struct pb_wire_field f;
    while (pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, f.number);
        if (!field || f.type != PB_WIRE_BYTES || !f.len)
            continue;
        if (field->type == PROTOBUF_C_TYPE_STRING && memchr(f.data, 0, f.len))
            return true;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && holds_zero(field->descriptor, f.data, f.len))
            return true;
    }
    return false;
}

ProtobufCMessage *grpc_control_unpack(struct grpc_stream *s, const ProtobufCMessageDescriptor *type,
                                      const uint8_t *data, size_t len)
{
    ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, len, data);
    bool valid = m && grpc_control_valid_strings(m);
    if (valid && !holds_zero(type, data, len))
        return m;
    if (m)
        protobuf_c_message_free_unpacked(m, NULL);
    if (valid)
        grpc_control_answer(
            s, err_new(STATUS_INVALID_ARG, "a text of the request holds a zero byte"), NULL);
    else
        grpc_answer_end(s, GRPC_ANSWER_INTERNAL, "Unable to parse request");
    return NULL;
}

struct err *grpc_control_send(struct grpc_stream *s, const ProtobufCMessage *m)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    struct packed *p = NULL;
    struct err *e = new_packed(s->conn, len, &p);
    if (e)
        return e;
    protobuf_c_message_pack(m, grpc_prefix_put(p->bytes, false, (uint32_t)len));
    p->piece = (struct iovec){p->bytes, GRPC_PREFIX_BYTES + len};
    p->reply.pieces = &p->piece;
    p->reply.left = p->piece.iov_len;
    grpc_answer_send(s, &p->reply);
    return NULL;
}

/* Ends the call with an error, or with a message. */
static void grpc_control_end_call(struct grpc_stream *s, struct err *e, const ProtobufCMessage *m)
{
    if (!e && !grpc_control_valid_strings(m))
        e = err_new(STATUS_INTERNAL, "the answer holds text that is not UTF-8");
    if (!e)
        e = grpc_control_send(s, m);
    if (e)
        grpc_answer_fail(s, e);
    else
        grpc_answer_end(s, GRPC_ANSWER_OK, NULL);
}

void grpc_control_answer(struct grpc_stream *s, struct err *e, const ProtobufCMessage *m)
{
    grpc_control_end_call(s, e, m);
}

/* As grpc_control_end_call, and frees the message. */
static void answer_owned(struct grpc_stream *s, struct err *e, void *message)
{
    grpc_control_end_call(s, e, message);
    if (!e)
        protobuf_c_message_free_unpacked(message, NULL);
}

static struct worker *grpc_control_worker(const struct grpc_stream *s)
{
    return s->conn->home->worker;
}

void grpc_control_server_live(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *in =
        grpc_control_unpack(s, &inference__server_live_request__descriptor, data, len);
    if (!in)
        return;
    Inference__ServerLiveResponse out = INFERENCE__SERVER_LIVE_RESPONSE__INIT;
    out.live = server_live(grpc_control_worker(s)->server);
    grpc_control_end_call(s, NULL, &out.base);
    protobuf_c_message_free_unpacked(in, NULL);
}

void grpc_control_server_ready(struct grpc_stream *s, const uint8_t *data, size_t len,
                               struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *in =
        grpc_control_unpack(s, &inference__server_ready_request__descriptor, data, len);
    if (!in)
        return;
    Inference__ServerReadyResponse out = INFERENCE__SERVER_READY_RESPONSE__INIT;
    out.ready = server_ready(grpc_control_worker(s)->server, &grpc_control_worker(s)->view);
    grpc_control_end_call(s, NULL, &out.base);
    protobuf_c_message_free_unpacked(in, NULL);
}

void grpc_control_model_ready(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m =
        grpc_control_unpack(s, &inference__model_ready_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__ModelReadyRequest *in = (const Inference__ModelReadyRequest *)m;
    Inference__ModelReadyResponse out = INFERENCE__MODEL_READY_RESPONSE__INIT;
    int64_t version;
    bool ready = false;
    struct err *e = describe_parse_version(in->version, strlen(in->version), &version);
    if (!e)
        e = describe_model_ready(&grpc_control_worker(s)->view, in->name, strlen(in->name), version,
                                 &ready);
    out.ready = !e && ready;
    grpc_control_end_call(s, e, &out.base);
    protobuf_c_message_free_unpacked(m, NULL);
}

void grpc_control_server_metadata(struct grpc_stream *s, const uint8_t *data, size_t len,
                                  struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *in =
        grpc_control_unpack(s, &inference__server_metadata_request__descriptor, data, len);
    if (!in)
        return;
    answer_owned(s, NULL, server_metadata_new(grpc_control_worker(s)->server));
    protobuf_c_message_free_unpacked(in, NULL);
}

void grpc_control_model_metadata(struct grpc_stream *s, const uint8_t *data, size_t len,
                                 struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m =
        grpc_control_unpack(s, &inference__model_metadata_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__ModelMetadataRequest *in = (const Inference__ModelMetadataRequest *)m;
    Inference__ModelMetadataResponse *out = NULL;
    int64_t version;
    struct err *e = describe_parse_version(in->version, strlen(in->version), &version);
    if (!e)
        e = describe_model(&grpc_control_worker(s)->view, in->name, strlen(in->name), version,
                           &out);
    answer_owned(s, e, out);
    protobuf_c_message_free_unpacked(m, NULL);
}

void grpc_control_model_config(struct grpc_stream *s, const uint8_t *data, size_t len,
                               struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m =
        grpc_control_unpack(s, &inference__model_config_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__ModelConfigRequest *in = (const Inference__ModelConfigRequest *)m;
    Inference__ModelConfigResponse out = INFERENCE__MODEL_CONFIG_RESPONSE__INIT;
    struct model_config *shown = NULL;
    int64_t version;
    struct err *e = describe_parse_version(in->version, strlen(in->version), &version);
    if (!e)
        e = describe_config(&grpc_control_worker(s)->view, in->name, strlen(in->name), version,
                            &shown);
    if (!e)
        out.config = (Inference__ModelConfig *)shown->proto; /* it is only read */
    grpc_control_end_call(s, e, &out.base);
    if (shown)
        config_unref(shown);
    protobuf_c_message_free_unpacked(m, NULL);
}

void grpc_control_model_statistics(struct grpc_stream *s, const uint8_t *data, size_t len,
                                   struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m =
        grpc_control_unpack(s, &inference__model_statistics_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__ModelStatisticsRequest *in = (const Inference__ModelStatisticsRequest *)m;
    Inference__ModelStatisticsResponse *out = NULL;
    int64_t version;
    struct err *e = describe_parse_version(in->version, strlen(in->version), &version);
    if (!e)
        e = describe_statistics(&grpc_control_worker(s)->view, in->name, strlen(in->name), version,
                                &out);
    answer_owned(s, e, out);
    protobuf_c_message_free_unpacked(m, NULL);
}

void grpc_control_health_check(struct grpc_stream *s, const uint8_t *data, size_t len,
                               struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m =
        grpc_control_unpack(s, &grpc__health__v1__health_check_request__descriptor, data, len);
    if (!m)
        return;
    /* As in the reference, every service is ready when the server is ready. */
    Grpc__Health__V1__HealthCheckResponse out = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    out.status = server_ready(grpc_control_worker(s)->server, &grpc_control_worker(s)->view)
                     ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                     : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
    grpc_control_end_call(s, NULL, &out.base);
    protobuf_c_message_free_unpacked(m, NULL);
}

void grpc_control_unsupported(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf)
{
    (void)data;
    (void)len;
    (void)buf;
    const char *name = strrchr(s->method->path, '/') + 1;
    grpc_answer_fail(s, err_new(STATUS_UNSUPPORTED, "%s is not supported by this server", name));
}
