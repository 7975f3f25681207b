/* A ModelInferRequest from the wire: our parser sees the same as protobuf-c, computed sizes
 * match what is written, and what was read can be written as a response. */
#include "base/arena.h"
#include "base/check.h"
#include "base/mem.h"
#include "codec/infer_pb.h"
#include "codec/infer_pb_write.h"
#include "proto/grpc_service.pb-c.h"

#include <string.h>

static const uint8_t widths[] = {0, 1, 4, 8, 4, 8, 4, 8, 0};

static void write_contents(const struct infer_pb_contents *c)
{
    for (enum infer_pb_content kind = INFER_PB_BOOLS; kind < INFER_PB_CONTENTS; kind++) {
        uint64_t bytes = infer_pb_content_bytes(c, kind, widths[kind]);
        uint8_t *to = mem_alloc(bytes + 1);
        to[bytes] = 0xA5;
        infer_pb_content_write(c, kind, widths[kind], to);
        CHECK(to[bytes] == 0xA5);
        mem_free(to);
    }
}

static void write_response(const struct infer_pb_request *q, struct arena *a, bool streamed)
{
    struct infer_pb_response r = {.model_name = q->model_name,
                                  .model_version = q->model_version,
                                  .id = q->id,
                                  .params = q->params,
                                  .output_count = q->input_count,
                                  .streamed = streamed};
    r.outputs = arena_alloc(a, (q->input_count + 1) * sizeof(*r.outputs));
    struct infer_pb_tensor *t = q->inputs;
    struct infer_pb_part *raw = q->raws;
    for (uint32_t i = 0; i < q->input_count; i++, t = t->next) {
        r.outputs[i] = (struct infer_pb_output){.name = t->name,
                                                .datatype = t->datatype,
                                                .shape = t->shape,
                                                .rank = t->rank,
                                                .data = raw ? raw->bytes.data : NULL,
                                                .data_bytes = raw ? raw->bytes.len : 0};
        raw = raw ? raw->next : NULL;
    }
    struct infer_pb_size size;
    CHECK(infer_pb_write_measure(&r, &size) == INFER_PB_OK);
    uint8_t *head = mem_alloc(size.head_bytes + 1);
    struct iovec *pieces = mem_alloc((size.piece_count + 1) * sizeof(*pieces));
    head[size.head_bytes] = 0xA5;
    uint32_t count = infer_pb_write(&r, &size, head, pieces);
    CHECK(head[size.head_bytes] == 0xA5 && count <= size.piece_count);
    uint8_t *whole = mem_alloc(size.total + 1);
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(pieces[i].iov_len <= size.total - at);
        if (pieces[i].iov_len)
            memcpy(whole + at, pieces[i].iov_base, pieces[i].iov_len);
        at += pieces[i].iov_len;
    }
    CHECK(at == size.total);
    const ProtobufCMessageDescriptor *type =
        streamed ? &inference__model_stream_infer_response__descriptor
                 : &inference__model_infer_response__descriptor;
    ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, size.total, whole);
    CHECK(m);
    protobuf_c_message_free_unpacked(m, NULL);
    mem_free(whole);
    mem_free(pieces);
    mem_free(head);
}

/* protobuf-c refuses a known field with another wire type; other parsers treat it as unknown.
 * For all other inputs, both parsers must see the same. */
static void compare(const struct infer_pb_request *q, const uint8_t *data, size_t size)
{
    Inference__ModelInferRequest *m = inference__model_infer_request__unpack(NULL, size, data);
    if (!m)
        return;
    CHECK(m->n_inputs == q->input_count && m->n_outputs == q->output_count &&
          m->n_raw_input_contents == q->raw_count);
    CHECK(strlen(m->model_name) <= q->model_name.len && strlen(m->id) <= q->id.len);
    const struct infer_pb_tensor *t = q->inputs;
    for (size_t i = 0; i < m->n_inputs; i++, t = t->next)
        CHECK(
            m->inputs[i]->n_shape == t->rank &&
            (!t->rank || memcmp(m->inputs[i]->shape, t->shape, t->rank * sizeof(*t->shape)) == 0));
    inference__model_infer_request__free_unpacked(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a, NULL, 0);
    struct infer_pb_request q;
    enum infer_pb_result result = infer_pb_read(data, size, &a, &q);
    for (size_t len = 0; len <= size; len += size / 8 + 1)
        CHECK(infer_pb_raw_offset(data, len) <= size);
    if (result == INFER_PB_OK) {
        compare(&q, data, size);
        for (struct infer_pb_tensor *t = q.inputs; t; t = t->next)
            if (t->contents)
                write_contents(t->contents);
        write_response(&q, &a, false);
        write_response(&q, &a, true);
    }
    arena_fini(&a);
    return 0;
}
