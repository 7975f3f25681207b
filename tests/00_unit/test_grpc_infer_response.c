/* Responses as gRPC messages, read back with another library: parameters of every type, errors,
 * and what cannot be sent. */
#include "grpc/api/grpc_infer_response.h"

#include "base/budget.h"
#include "base/fault.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/request_text.h"
#include "infer/response.h"
#include "grpc/grpc_inbox.h"
#include "grpc/api/grpc_infer_request.h"
#include "proto/grpc_service.pb-c.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <string.h>

#define MODEL                                                                           \
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_INT32 dims: [ -1 ] }] "  \
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ -1 ] }, { name: 's' data_type: " \
    "TYPE_STRING dims: [ -1 ] }] "
#define BROKEN "not UTF-8: \xff"

static struct plugin_backend backend;
static struct serve_version *version;

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    (void)requests;
    (void)count;
    return NULL;
}

static int set_up(void **state)
{
    (void)state;
    backend = test_version_backend(execute);
    version = test_version_new(&backend, MODEL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    version_drain(version);
    version_free(version);
    return 0;
}

/* A response with one output; the request goes with it. */
static struct response *made(void)
{
    static const int32_t values[3] = {1, -2, 3};
    version_pin(version);
    struct request *r = request_new(&version->target, NULL, NULL, NULL);
    r->id = "the id";
    struct response *response = response_new(r);
    struct tensor_output *o = response_add_output(response, "o", DATATYPE_INT32, (int64_t[]){3}, 1);
    unit_succeeds(response_output_buffer(response, o, sizeof(values)));
    memcpy(o->data, values, sizeof(values));
    request_release(r);
    return response;
}

/* The bytes of a reply, without their prefix; frees it. */
static uint8_t *bytes_of(struct h2_reply *reply, size_t *ret_len)
{
    size_t len = 0;
    uint8_t *all = mem_alloc(reply->left);
    for (uint32_t i = 0; i < reply->piece_count; i++) {
        memcpy(all + len, reply->pieces[i].iov_base, reply->pieces[i].iov_len);
        len += reply->pieces[i].iov_len;
    }
    assert_int_equal(len, reply->left);
    assert_int_equal(all[0], 0);
    *ret_len = len - GRPC_PREFIX_BYTES;
    assert_int_equal(
        (uint32_t)all[1] << 24 | (uint32_t)all[2] << 16 | (uint32_t)all[3] << 8 | all[4], *ret_len);
    memmove(all, all + GRPC_PREFIX_BYTES, *ret_len);
    reply->free_fn(reply);
    return all;
}

static Inference__ModelInferResponse *unary(struct h2_reply *reply)
{
    size_t len;
    uint8_t *bytes = bytes_of(reply, &len);
    Inference__ModelInferResponse *m = inference__model_infer_response__unpack(NULL, len, bytes);
    assert_non_null(m);
    mem_free(bytes);
    return m;
}

static Inference__ModelStreamInferResponse *streamed(struct h2_reply *reply)
{
    size_t len;
    uint8_t *bytes = bytes_of(reply, &len);
    Inference__ModelStreamInferResponse *m =
        inference__model_stream_infer_response__unpack(NULL, len, bytes);
    assert_non_null(m);
    mem_free(bytes);
    return m;
}

static const Inference__InferParameter *param_of(const Inference__ModelInferResponse *m,
                                                 const char *name)
{
    for (size_t i = 0; i < m->n_parameters; i++)
        if (strcmp(m->parameters[i]->key, name) == 0)
            return m->parameters[i]->value;
    return NULL;
}

static void add_parameters(struct response *r)
{
    param_add_string(&r->params, &r->arena, "text", 4, "old", 3);
    param_add(&r->params, &r->arena, "int", 3, PARAM_INT)->i = INT64_MIN;
    param_add(&r->params, &r->arena, "bool", 4, PARAM_BOOL)->b = true;
    param_add(&r->params, &r->arena, "real", 4, PARAM_DOUBLE)->d = -0.5;
    param_add_string(&r->params, &r->arena, "text", 4, "new", 3);
}

static void check_message(const Inference__ModelInferResponse *m)
{
    assert_string_equal(m->model_name, "m");
    assert_string_equal(m->model_version, "1");
    assert_string_equal(m->id, "the id");
    assert_string_equal(param_of(m, "text")->string_param, "new");
    assert_int_equal(param_of(m, "int")->int64_param, INT64_MIN);
    assert_true(param_of(m, "bool")->bool_param);
    assert_true(param_of(m, "real")->double_param == -0.5);
    assert_int_equal(m->n_outputs, 1);
    assert_string_equal(m->outputs[0]->name, "o");
    assert_string_equal(m->outputs[0]->datatype, "INT32");
    assert_int_equal(m->outputs[0]->shape[0], 3);
    assert_int_equal(m->raw_output_contents[0].len, 12);
}

/* Of two parameters of a name the last holds. */
static void parameters(void **state)
{
    (void)state;
    struct h2_reply *reply;
    struct response *r = made();
    add_parameters(r);
    unit_succeeds(grpc_infer_response(r, NULL, &reply));
    Inference__ModelInferResponse *m = unary(reply);
    check_message(m);
    assert_int_equal(m->n_parameters, 4);
    inference__model_infer_response__free_unpacked(m, NULL);

    r = made();
    add_parameters(r);
    r->flags = RESPONSE_FINAL;
    unit_succeeds(grpc_infer_response_streamed(r, NULL, "1", &reply));
    Inference__ModelStreamInferResponse *s = streamed(reply);
    assert_string_equal(s->error_message, "");
    check_message(s->infer_response);
    assert_int_equal(s->infer_response->n_parameters, 5);
    assert_true(param_of(s->infer_response, "triton_final_response")->bool_param);
    inference__model_stream_infer_response__free_unpacked(s, NULL);
}

/* Without outputs of its own: what the request said of itself. */
static void errors_and_empty_responses(void **state)
{
    (void)state;
    struct h2_reply *reply;
    struct response *r = made();
    r->error = err_new(STATUS_INVALID_ARG, "it failed");
    unit_succeeds(grpc_infer_response_streamed(r, NULL, "01", &reply));
    Inference__ModelStreamInferResponse *s = streamed(reply);
    assert_string_equal(s->error_message, "it failed");
    assert_string_equal(s->infer_response->model_version, "01");
    assert_string_equal(s->infer_response->id, "the id");
    assert_int_equal(s->infer_response->n_outputs, 0);
    assert_false(param_of(s->infer_response, "triton_final_response")->bool_param);
    inference__model_stream_infer_response__free_unpacked(s, NULL);

    r = made();
    r->empty = true;
    r->flags = RESPONSE_FINAL;
    unit_succeeds(grpc_infer_response_streamed(r, NULL, NULL, &reply));
    s = streamed(reply);
    assert_string_equal(s->error_message, "");
    assert_string_equal(s->infer_response->model_name, "m");
    assert_string_equal(s->infer_response->model_version, "");
    assert_true(param_of(s->infer_response, "triton_final_response")->bool_param);
    inference__model_stream_infer_response__free_unpacked(s, NULL);
}

static void refuses(struct response *r, enum status code, const char *part)
{
    struct h2_reply *reply;
    unit_fails(grpc_infer_response(r, NULL, &reply), code, part);
    unit_fails(grpc_infer_response_streamed(r, NULL, NULL, &reply), code, part);
    response_free(r);
}

static void what_cannot_be_sent(void **state)
{
    (void)state;
    struct response *r = made();
    param_add_string(&r->params, &r->arena, "bytes", 5, "x", 1)->type = PARAM_BYTES;
    refuses(r, STATUS_UNSUPPORTED, "'TRITONSERVER_PARAMETER_BYTES' is not currently supported");
    r = made();
    param_add_string(&r->params, &r->arena, "text", 4, BROKEN, strlen(BROKEN));
    refuses(r, STATUS_INTERNAL, "not UTF-8");
    r = made();
    r->outputs->memory = BUF_MEMORY_GPU;
    refuses(r, STATUS_UNSUPPORTED, "output 'o' lies in GPU memory");
}

/* A classification of strings: what the backend sent stays unsent. */
static void classes_that_cannot_be(void **state)
{
    (void)state;
    struct h2_reply *reply;
    struct grpc_infer_classes classes = {.output = "s", .classes = 1};
    struct response *r = made();
    struct tensor_output *o = response_add_output(r, "s", DATATYPE_BYTES, (int64_t[]){1}, 1);
    unit_succeeds(response_output_buffer(r, o, 4));
    memset(o->data, 0, 4);
    unit_fails(grpc_infer_response(r, &classes, &reply), STATUS_INVALID_ARG, "'BYTES'");
    response_free(r);
}

/* Bytes of an error that are not UTF-8 are written out. */
static void errors_before_there_is_a_response(void **state)
{
    (void)state;
    static const struct infer_pb_slice id = {"7", 1};
    const char *const words[][2] = {{"no such model", "no such model"},
                                    {BROKEN, "not UTF-8: \\xff"}};
    for (size_t i = 0; i < 2; i++) {
        struct err *e = err_new(STATUS_NOT_FOUND, "%s", words[i][0]);
        Inference__ModelStreamInferResponse *s =
            streamed(grpc_infer_response_error(e, id, NULL, false));
        assert_string_equal(s->error_message, words[i][1]);
        assert_string_equal(s->infer_response->id, "7");
        inference__model_stream_infer_response__free_unpacked(s, NULL);
        err_free(e);
    }
}

/* They can wait for their client, so they take part in the budget, and quote only so much of
 * what it sent. */
static void errors_are_charged(void **state)
{
    (void)state;
    static char text[REQUEST_TEXT_MESSAGE_BYTES + 1000];
    memset(text, 'a', sizeof(text) - 1);
    struct infer_pb_slice id = {text, REQUEST_TEXT_ID_BYTES + 1};
    struct err *e = err_new(STATUS_NOT_FOUND, "%s", text);
    struct err *little = err_new(STATUS_NOT_FOUND, "no such model");
    size_t before = budget_in_use(), limit = budget_limit();
    struct budget_account *account = budget_account_new();
    struct h2_reply *reply = grpc_infer_response_error(e, id, account, false);
    assert_true(budget_in_use() >= before + REQUEST_TEXT_MESSAGE_BYTES);
    Inference__ModelStreamInferResponse *s = streamed(reply);
    assert_int_equal(budget_in_use(), before);
    assert_int_equal(strlen(s->error_message), REQUEST_TEXT_MESSAGE_BYTES);
    assert_string_equal(s->infer_response->id, "");
    inference__model_stream_infer_response__free_unpacked(s, NULL);
    budget_set_limit(before + 1);
    s = streamed(grpc_infer_response_error(little, id, account, false));
    assert_string_equal(s->error_message, "no such model");
    inference__model_stream_infer_response__free_unpacked(s, NULL);
    /* that there is no room is little */
    s = streamed(grpc_infer_response_error(e, id, account, false));
    assert_non_null(strstr(s->error_message, "no memory"));
    inference__model_stream_infer_response__free_unpacked(s, NULL);
    assert_int_equal(budget_in_use(), before);
    budget_hold(account, BUDGET_STEP);
    assert_null(grpc_infer_response_error(little, id, account, false));
    /* but what is little may be had */
    s = streamed(grpc_infer_response_error(e, id, account, true));
    assert_non_null(strstr(s->error_message, "no memory"));
    inference__model_stream_infer_response__free_unpacked(s, NULL);
    budget_drop(account, BUDGET_STEP);
    budget_account_close(account);
    budget_set_limit(limit);
    err_free(e);
    err_free(little);
}

/* Each allocation fails in turn: an error, or the whole message. */
static void no_memory(void **state)
{
    (void)state;
    unsigned failed = 0;
    for (long n = 1;; n++) {
        struct h2_reply *reply;
        struct response *r = made();
        int64_t shape[64];
        for (unsigned i = 0; i < 64; i++)
            shape[i] = 1;
        for (unsigned i = 0; i < 100; i++)
            response_add_output(r, "o", DATATYPE_INT32, shape, 64);
        fault_arm(n);
        struct err *e = grpc_infer_response(r, NULL, &reply);
        long passed = fault_passed();
        fault_arm(0);
        if (e) {
            unit_fails(e, STATUS_UNAVAILABLE, "no memory for a response of");
            response_free(r);
            failed++;
            continue;
        }
        reply->free_fn(reply);
        if (passed < n)
            break;
    }
    assert_true(failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {UNIT(parameters),
                                       UNIT(errors_and_empty_responses),
                                       UNIT(what_cannot_be_sent),
                                       UNIT(classes_that_cannot_be),
                                       UNIT(errors_before_there_is_a_response),
                                       UNIT(errors_are_charged),
                                       UNIT(no_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
