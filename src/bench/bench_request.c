#include "bench/bench_request.h"

#include "base/mem.h"
#include "codec/grpc_prefix.h"
#include "codec/json_out.h"
#include "codec/pb_wire.h"
#include "model/shape.h"
#include "model/tensor_json.h"

#include <proto/grpc_service.pb-c.h>
#include <stdio.h>
#include <string.h>

/* Field numbers of ModelInferRequest, and of a map's entry and an InferParameter in it. */
enum {
    FIELD_PARAMETERS = 4,
    FIELD_KEY = 1,
    FIELD_VALUE = 2,
    FIELD_BOOL = 1,
    FIELD_INT64 = 2,
};

static void bench_put_numbers(struct strbuf *to, const struct bench_tensor *t)
{
    struct json_tensor_type type;
    size_t room = 0;
    strbuf_puts(to, ",\"data\":");
    if (!tensor_json_type(t->input->datatype, &type) ||
        !json_tensor_room(type, t->elements, t->len, &room))
        return;
    char *at = strbuf_reserve(to, room);
    char *end = json_tensor_write(at, type, t->elements, t->bytes, t->len);
    to->len += end ? (size_t)(end - at) : 0;
}

static void make_http(const struct bench_options *o, const struct bench_step *s,
                      struct bench_request *r)
{
    struct strbuf *to = &r->rest;
    strbuf_puts(to, "\"inputs\":[");
    for (uint32_t i = 0; i < s->tensor_count; i++) {
        const struct bench_tensor *t = &s->tensors[i];
        strbuf_puts(to, i ? ",{\"name\":" : "{\"name\":");
        json_out_put(to, t->input->name);
        strbuf_printf(to, ",\"datatype\":\"%s\",\"shape\":", datatype_name(t->input->datatype));
        shape_print(to, t->dims, t->rank);
        if (o->json_input)
            bench_put_numbers(to, t);
        else if (t->region)
            strbuf_printf(to,
                          ",\"parameters\":{\"shared_memory_region\":\"%s\","
                          "\"shared_memory_offset\":%llu,\"shared_memory_byte_size\":%zu}",
                          t->region, (unsigned long long)t->offset, t->len);
        else
            strbuf_printf(to, ",\"parameters\":{\"binary_data_size\":%zu}", t->len);
        strbuf_putc(to, '}');
    }
    strbuf_puts(to, "]}");
    r->json_len = to->len;
    for (uint32_t i = 0; !o->json_input && i < s->tensor_count; i++)
        if (!s->tensors[i].region)
            strbuf_append(to, s->tensors[i].bytes, s->tensors[i].len);
}

typedef Inference__ModelInferRequest__InferInputTensor__ParametersEntry input_entry;

/* The three parameters that name a place in shared memory. */
struct shared_input {
    Inference__InferParameter values[3];
    input_entry entries[3];
    input_entry *list[3];
};

static void name_memory(const struct bench_tensor *t, struct shared_input *s,
                        Inference__ModelInferRequest__InferInputTensor *input)
{
    static const char *const keys[] = {"shared_memory_region", "shared_memory_offset",
                                       "shared_memory_byte_size"};
    for (int i = 0; i < 3; i++) {
        inference__infer_parameter__init(&s->values[i]);
        inference__model_infer_request__infer_input_tensor__parameters_entry__init(&s->entries[i]);
        s->entries[i].key = (char *)(uintptr_t)keys[i];
        s->entries[i].value = &s->values[i];
        s->list[i] = &s->entries[i];
        s->values[i].parameter_choice_case =
            INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_INT64_PARAM;
    }
    s->values[0].parameter_choice_case = INFERENCE__INFER_PARAMETER__PARAMETER_CHOICE_STRING_PARAM;
    s->values[0].string_param = (char *)(uintptr_t)t->region;
    s->values[1].int64_param = (int64_t)t->offset;
    s->values[2].int64_param = (int64_t)t->len;
    input->n_parameters = 3;
    input->parameters = s->list;
}

static void make_grpc(const struct bench_options *o, const struct bench_step *s,
                      struct bench_request *r)
{
    Inference__ModelInferRequest m = INFERENCE__MODEL_INFER_REQUEST__INIT;
    uint32_t n = s->tensor_count;
    Inference__ModelInferRequest__InferInputTensor *inputs = mem_zalloc((n + 1) * sizeof(*inputs));
    Inference__ModelInferRequest__InferInputTensor **list = mem_zalloc((n + 1) * sizeof(*list));
    ProtobufCBinaryData *raw = mem_zalloc((n + 1) * sizeof(*raw));
    struct shared_input *shared = mem_zalloc((n + 1) * sizeof(*shared));
    for (uint32_t i = 0; i < n; i++) {
        struct bench_tensor *t = &s->tensors[i];
        inference__model_infer_request__infer_input_tensor__init(&inputs[i]);
        inputs[i].name = t->input->name;
        inputs[i].datatype = (char *)(uintptr_t)datatype_name(t->input->datatype);
        inputs[i].n_shape = t->rank;
        inputs[i].shape = t->dims;
        list[i] = &inputs[i];
        raw[i] = (ProtobufCBinaryData){t->len, (uint8_t *)t->bytes};
        if (t->region)
            name_memory(t, &shared[i], &inputs[i]);
    }
    m.model_name = (char *)(uintptr_t)o->model;
    m.model_version = (char *)(uintptr_t)o->version;
    m.n_inputs = n;
    m.n_raw_input_contents = o->shared_memory ? 0 : n;
    m.inputs = list;
    m.raw_input_contents = raw;
    size_t len = inference__model_infer_request__get_packed_size(&m);
    inference__model_infer_request__pack(&m, (uint8_t *)strbuf_reserve(&r->rest, len));
    r->rest.len = len;
    mem_free(shared);
    mem_free(raw);
    mem_free(list);
    mem_free(inputs);
}

void bench_request_make(const struct bench_options *o, const struct bench_step *s,
                        struct bench_request *ret)
{
    *ret = (struct bench_request){0};
    if (o->protocol == BENCH_HTTP)
        make_http(o, s, ret);
    else
        make_grpc(o, s, ret);
}

static void head_http(const struct bench_options *o, const struct bench_request *r,
                      const struct bench_place *place, struct strbuf *to)
{
    char json[256] = "{";
    size_t len = 1;
    if (place->sequence)
        len = (size_t)snprintf(json, sizeof(json),
                               "{\"parameters\":{\"sequence_id\":%llu,\"sequence_start\":%s,"
                               "\"sequence_end\":%s,\"binary_data_output\":%s},",
                               (unsigned long long)place->sequence, place->start ? "true" : "false",
                               place->end ? "true" : "false", o->json_output ? "false" : "true");
    else if (!o->json_output)
        len =
            (size_t)snprintf(json, sizeof(json), "{\"parameters\":{\"binary_data_output\":true},");
    strbuf_puts(to, "POST ");
    bench_model_path(o, to);
    strbuf_printf(to, "/infer HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n",
                  bench_options_authority(o), len + r->rest.len);
    if (r->json_len != r->rest.len)
        strbuf_printf(to,
                      "Content-Type: application/octet-stream\r\n"
                      "Inference-Header-Content-Length: %zu\r\n\r\n",
                      len + r->json_len);
    else
        strbuf_puts(to, "Content-Type: application/json\r\n\r\n");
    strbuf_append(to, json, len);
}

/* An entry of the map of parameters: a boolean or a number. */
static uint8_t *bench_put_parameter(uint8_t *to, const char *name, uint32_t field, uint64_t value)
{
    size_t name_len = strlen(name);
    size_t value_len = 1 + pb_wire_varint_bytes(value);
    to = pb_wire_put_tag(to, FIELD_PARAMETERS, PB_WIRE_BYTES);
    to = pb_wire_put_varint(to, pb_wire_bytes_bytes(name_len) + pb_wire_bytes_bytes(value_len));
    to = pb_wire_put_bytes(to, FIELD_KEY, name, name_len);
    to = pb_wire_put_tag(to, FIELD_VALUE, PB_WIRE_BYTES);
    to = pb_wire_put_varint(to, value_len);
    return pb_wire_put_varint(pb_wire_put_tag(to, field, PB_WIRE_VARINT), value);
}

static void head_grpc(const struct bench_request *r, const struct bench_place *place,
                      struct strbuf *to)
{
    uint8_t bytes[256];
    uint8_t *end = bytes + GRPC_PREFIX_BYTES;
    if (place->sequence) {
        end = bench_put_parameter(end, "sequence_id", FIELD_INT64, place->sequence);
        end = bench_put_parameter(end, "sequence_start", FIELD_BOOL, place->start);
        end = bench_put_parameter(end, "sequence_end", FIELD_BOOL, place->end);
    }
    if (place->final_flag)
        end = bench_put_parameter(end, "triton_enable_empty_final_response", FIELD_BOOL, true);
    size_t head = (size_t)(end - bytes);
    grpc_prefix_put(bytes, false, (uint32_t)(head - GRPC_PREFIX_BYTES + r->rest.len));
    strbuf_append(to, bytes, head);
}

void bench_request_head(const struct bench_options *o, const struct bench_request *r,
                        const struct bench_place *place, struct strbuf *to)
{
    if (o->protocol == BENCH_HTTP)
        head_http(o, r, place, to);
    else
        head_grpc(r, place, to);
}
