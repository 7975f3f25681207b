/* A request and its response while memory is short: the tensors are what a peer chooses the size
 * of. */
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "model/config_fill.h"
#include "support/fault_run.h"
#include "support/unit.h"

#include <string.h>

static const char text[] =
    "name: \"m\" backend: \"identity\" input { name: \"a\" data_type: TYPE_FP32 dims: [ -1 ] }\n"
    "output { name: \"b\" data_type: TYPE_FP32 dims: [ -1 ] }";

static int pins;
static struct err *answer;
static struct request_target target;

static void unpin(struct request_target *t)
{
    assert_ptr_equal(t, &target);
    pins--;
}

static void respond(struct response *r, void *owner)
{
    (void)owner;
    answer = err_copy(r->error);
    response_free(r);
}

static int make_config(void **state)
{
    (void)state;
    struct Inference__ModelConfig *proto = NULL;
    struct model_config *config = NULL;
    unit_succeeds(config_parse_text(text, sizeof(text) - 1, "config.pbtxt", &proto));
    config_fill_defaults(proto, "m");
    unit_succeeds(config_compile(&proto, &config));
    target = (struct request_target){.config = config, .unpin = unpin};
    return 0;
}

static int drop_config(void **state)
{
    (void)state;
    config_unref((struct model_config *)(uintptr_t)target.config);
    return 0;
}

static struct err *infer(void *arg)
{
    static const float values[4] = {1, 2, 3, 4};
    uint64_t output_bytes = *(uint64_t *)arg;
    const int64_t shape[] = {4};
    const struct tensor_piece piece = {.data = values, .size = sizeof(values)};
    answer = NULL;
    pins++;
    struct request *r = request_new(&target, NULL, respond, NULL);
    assert_non_null(request_add_input(r, "a", 1, DATATYPE_FP32, shape, 1, &piece, 1));
    struct err *e = request_prepare(r);
    if (e) {
        request_release(r);
        return e;
    }
    struct response *response = response_new(r);
    struct tensor_output *out = response_add_output(response, "b", DATATYPE_FP32, shape, 1);
    e = response_output_buffer(response, out, output_bytes);
    if (!e)
        memset(out->data, 0, output_bytes);
    response_send(response, RESPONSE_FINAL, e);
    request_release(r);
    assert_int_equal(pins, 0);
    return answer;
}

static void outputs_of_all_sizes(void **state)
{
    (void)state;
    const uint64_t sizes[] = {0, 100, 1000, 20000, 1 << 20};
    long points = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t size = sizes[i];
        points += fault_run(infer, &size);
    }
    assert_true(points >= 2);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(outputs_of_all_sizes, make_config, drop_config))
