/* codec/infer_pb_write: responses of ours, read by protobuf-c. */
#include "codec/infer_pb_write.h"

#include "proto/grpc_service.pb-c.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

typedef Inference__ModelInferResponse Message;

static struct infer_pb_slice slice(const char *s)
{
    return (struct infer_pb_slice){s, strlen(s)};
}

/* Writes it with every piece checked, and puts the pieces together; free the result. */
static uint8_t *written(struct infer_pb_response *r, size_t *ret_len)
{
    struct infer_pb_size size;
    assert_int_equal(infer_pb_write_measure(r, &size), INFER_PB_OK);
    uint8_t *head = malloc(size.head_bytes + 1);
    struct iovec *pieces = malloc(size.piece_count * sizeof(*pieces));
    uint32_t count = infer_pb_write(r, &size, head, pieces);
    assert_in_range(count, 1, size.piece_count);
    assert_ptr_equal(pieces[0].iov_base, head);
    uint8_t *all = malloc(size.total + 1);
    size_t n = 0;
    size_t from_head = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *base = pieces[i].iov_base;
        if (base >= head && base <= head + size.head_bytes)
            from_head += pieces[i].iov_len;
        memcpy(all + n, base, pieces[i].iov_len);
        n += pieces[i].iov_len;
    }
    assert_int_equal(n, size.total);
    assert_int_equal(from_head, size.head_bytes);
    free(pieces);
    free(head);
    *ret_len = n;
    return all;
}

static Message *read_back(struct infer_pb_response *r)
{
    size_t len;
    uint8_t *all = written(r, &len);
    Message *m = inference__model_infer_response__unpack(NULL, len, all);
    free(all);
    assert_non_null(m);
    return m;
}

static void free_message(Message *m)
{
    inference__model_infer_response__free_unpacked(m, NULL);
}

static void empty_response(void **state)
{
    (void)state;
    struct infer_pb_response r = {0};
    size_t len;
    free(written(&r, &len));
    assert_int_equal(len, 0);
}

static void descriptions(void **state)
{
    (void)state;
    const int64_t shape[] = {1, -1, 300, INT64_MAX, INT64_MIN, 0};
    struct infer_pb_output outputs[] = {
        {.name = slice("größe"),
         .datatype = slice("FP32"),
         .shape = shape,
         .rank = 6,
         .data = "abcd",
         .data_bytes = 4},
        {.name = slice("scalar"), .datatype = slice("BYTES"), .data = NULL, .data_bytes = 0},
    };
    struct infer_pb_response r = {
        .model_name = slice("m"),
        .model_version = slice("12"),
        .id = slice("id"),
        .outputs = outputs,
        .output_count = 2,
    };
    Message *m = read_back(&r);
    assert_string_equal(m->model_name, "m");
    assert_string_equal(m->model_version, "12");
    assert_string_equal(m->id, "id");
    assert_int_equal(m->n_outputs, 2);
    assert_string_equal(m->outputs[0]->name, "größe");
    assert_string_equal(m->outputs[0]->datatype, "FP32");
    assert_int_equal(m->outputs[0]->n_shape, 6);
    assert_memory_equal(m->outputs[0]->shape, shape, sizeof(shape));
    assert_int_equal(m->outputs[1]->n_shape, 0);
    assert_int_equal(m->n_raw_output_contents, 2);
    assert_int_equal(m->raw_output_contents[0].len, 4);
    assert_int_equal(m->raw_output_contents[1].len, 0);
    free_message(m);
}

static void parameters(void **state)
{
    (void)state;
    struct infer_pb_param params[] = {
        {.name = slice("yes"), .choice = INFER_PB_BOOL, .bits = 1},
        {.name = slice("no"), .choice = INFER_PB_BOOL, .bits = 0},
        {.name = slice("minus"), .choice = INFER_PB_INT64, .int64 = -5},
        {.name = slice("real"), .choice = INFER_PB_DOUBLE, .real = 0.25},
        {.name = slice(""), .choice = INFER_PB_STRING, .string = slice("value")},
        {.name = slice("empty"), .choice = INFER_PB_STRING, .string = slice("")},
        {.name = slice("large"), .choice = INFER_PB_UINT64, .bits = UINT64_MAX},
        {.name = slice("none"), .choice = INFER_PB_NONE},
    };
    size_t count = sizeof(params) / sizeof(*params);
    for (size_t i = 0; i + 1 < count; i++)
        params[i].next = &params[i + 1];
    struct infer_pb_response r = {.params = params};
    Message *m = read_back(&r);
    assert_int_equal(m->n_parameters, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(m->parameters[i]->key, params[i].name.data);
        assert_int_equal(m->parameters[i]->value->parameter_choice_case, params[i].choice);
    }
    assert_true(m->parameters[0]->value->bool_param);
    assert_false(m->parameters[1]->value->bool_param);
    assert_int_equal(m->parameters[2]->value->int64_param, -5);
    assert_true(m->parameters[3]->value->double_param == 0.25);
    assert_string_equal(m->parameters[4]->value->string_param, "value");
    assert_string_equal(m->parameters[5]->value->string_param, "");
    assert_true(m->parameters[6]->value->uint64_param == UINT64_MAX);
    free_message(m);
}

/* Tensors around the size from which they go by reference, in every order. */
static void tensors_by_reference_and_not(void **state)
{
    (void)state;
    static uint8_t data[3 * INFER_PB_COPY_BYTES];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 31);
    static const size_t sizes[] = {0, 1, INFER_PB_COPY_BYTES, INFER_PB_COPY_BYTES + 1,
                                   2 * INFER_PB_COPY_BYTES};
    for (unsigned order = 0; order < 5 * 5 * 5; order++) {
        struct infer_pb_output outputs[3];
        for (unsigned i = 0, rest = order; i < 3; i++, rest /= 5)
            outputs[i] = (struct infer_pb_output){
                .name = slice("o"), .data = data + i, .data_bytes = sizes[rest % 5]};
        struct infer_pb_response r = {.outputs = outputs, .output_count = 3};
        Message *m = read_back(&r);
        assert_int_equal(m->n_raw_output_contents, 3);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(m->raw_output_contents[i].len, outputs[i].data_bytes);
            if (outputs[i].data_bytes)
                assert_memory_equal(m->raw_output_contents[i].data, data + i,
                                    outputs[i].data_bytes);
        }
        free_message(m);
    }
}

static void large_tensors_are_not_copied(void **state)
{
    (void)state;
    static uint8_t data[INFER_PB_COPY_BYTES + 1];
    struct infer_pb_output output = {.name = slice("o"), .data = data, .data_bytes = sizeof(data)};
    struct infer_pb_response r = {.outputs = &output, .output_count = 1};
    struct infer_pb_size size;
    assert_int_equal(infer_pb_write_measure(&r, &size), INFER_PB_OK);
    assert_true(size.head_bytes < 32);
    uint8_t head[32];
    struct iovec pieces[3];
    assert_int_equal(infer_pb_write(&r, &size, head, pieces), 2);
    assert_ptr_equal(pieces[1].iov_base, data);
}

static void streamed(void **state)
{
    (void)state;
    struct infer_pb_response r = {.streamed = true, .error_message = slice("no"), .id = slice("7")};
    size_t len;
    uint8_t *all = written(&r, &len);
    Inference__ModelStreamInferResponse *m =
        inference__model_stream_infer_response__unpack(NULL, len, all);
    free(all);
    assert_non_null(m);
    assert_string_equal(m->error_message, "no");
    assert_non_null(m->infer_response);
    assert_string_equal(m->infer_response->id, "7");
    inference__model_stream_infer_response__free_unpacked(m, NULL);
}

static void text_must_be_utf8(void **state)
{
    (void)state;
    struct infer_pb_size size;
    struct infer_pb_output output = {.name = slice("\xff")};
    struct infer_pb_response bad_output = {.outputs = &output, .output_count = 1};
    assert_int_equal(infer_pb_write_measure(&bad_output, &size), INFER_PB_NOT_UTF8);
    struct infer_pb_param param = {
        .name = slice("p"), .choice = INFER_PB_STRING, .string = slice("\xc3(")};
    struct infer_pb_response bad_param = {.params = &param};
    assert_int_equal(infer_pb_write_measure(&bad_param, &size), INFER_PB_NOT_UTF8);
    struct infer_pb_response bad_id = {.id = slice("\x80")};
    assert_int_equal(infer_pb_write_measure(&bad_id, &size), INFER_PB_NOT_UTF8);
}

UNIT_MAIN(UNIT(empty_response), UNIT(descriptions), UNIT(parameters),
          UNIT(tensors_by_reference_and_not), UNIT(large_tensors_are_not_copied), UNIT(streamed),
          UNIT(text_must_be_utf8))
