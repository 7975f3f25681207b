/* serve/warmup: samples become requests, and a new instance runs all of them before it is used. */
#include "serve/warmup.h"

#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/thread.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "serve/instances.h"
#include "serve/runner.h"
#include "serve/version.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define MODEL                                                                         \
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_INT32 dims: [ 2 ] }] " \
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 2 ] }] "
#define INPUT(name, type, data) \
    "inputs { key: '" name "' value { data_type: " type " dims: [ 2 ] " data " } } "

/* What the backend below was given. */
#define MOST 64u
static unsigned executions;
static unsigned sizes[MOST];
static char shapes[512];
static unsigned fail_from; /* this execution and those after it answer with an error; 0 = none */
static bool later;         /* answers come from another thread */
static struct thread *answering;

struct batch {
    struct request *requests[MOST];
    uint32_t count;
    bool failed;
};

static void answer(void *arg)
{
    struct batch *b = arg;
    for (uint32_t i = 0; i < b->count; i++) {
        struct err *e = b->failed ? err_new(STATUS_INTERNAL, "cannot, %u", i) : NULL;
        response_send(response_new(b->requests[i]), RESPONSE_FINAL, e);
        request_release(b->requests[i]);
    }
    mem_free(b);
}

static void note_inputs(const struct request *r)
{
    shapes[0] = '\0';
    for (uint32_t i = 0; i < r->input_count; i++) {
        const struct tensor_input *in = &r->inputs[i];
        size_t used = strlen(shapes);
        snprintf(shapes + used, sizeof(shapes) - used, "%s %s", i ? "," : "", in->name);
        for (uint32_t d = 0; d < in->model_rank; d++) {
            used = strlen(shapes);
            snprintf(shapes + used, sizeof(shapes) - used, " %lld", (long long)in->model_shape[d]);
        }
        assert_int_equal(in->byte_size, in->elements * datatype_bytes(in->datatype));
    }
}

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    struct batch *b = MEM_NEW(struct batch);
    for (uint32_t i = 0; i < count; i++)
        b->requests[i] = request_take(requests[i]);
    note_inputs(b->requests[0]);
    sizes[executions++] = b->count = count;
    b->failed = fail_from && executions >= fail_from;
    if (!later) {
        answer(b);
        return NULL;
    }
    thread_join(answering);
    assert_null(thread_start("answer", answer, b, &answering));
    return NULL;
}

/* Wants each request again. */
static TRITONSERVER_Error *go_on(TRITONBACKEND_ModelInstance *instance,
                                 TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = request_take(requests[i]);
        unit_succeeds(request_check_reschedule(r));
        request_reschedule(r);
    }
    executions++;
    return NULL;
}

static TRITONSERVER_Error *refuse(TRITONBACKEND_ModelInstance *instance,
                                  TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    (void)requests;
    executions += count;
    return (TRITONSERVER_Error *)err_new(STATUS_INTERNAL, "not today");
}

/* Starts a version; returns why it could not, the caller's. */
static struct err *start(struct plugin_backend *backend, const char *text,
                         struct serve_version **ret)
{
    struct model_config *config = test_version_config(text);
    struct plugin_model *model = model_new(backend, "m", 1, "/", NULL, false, NULL);
    unit_succeeds(model_initialize(model));
    model_publish_config(model, config);
    unit_succeeds(version_new("m", 1, config, model, true, NULL, test_version_features(), ret));
    executions = 0;
    return version_start(*ret);
}

static void end(struct serve_version *v)
{
    thread_join(answering);
    answering = NULL;
    version_drain(v);
    version_free(v);
}

/* MC-135, PB-162, PB-183. */
static void runs_all_samples_on_every_instance(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(execute);
    struct serve_version *v;
    for (int pass = 0; pass < 2; pass++) {
        later = pass == 1;
        unit_succeeds(start(
            &backend,
            MODEL
            "max_batch_size: 8 instance_group [{ count: 2 kind: KIND_CPU }] "
            "model_warmup [{ name: 'a' batch_size: 3 count: 2 " INPUT(
                "i", "TYPE_INT32",
                "zero_data: true") "}, { name: 'b' batch_size: 1 " INPUT("i", "TYPE_INT32",
                                                                         "random_data: true") "}]",
            &v));
        assert_int_equal(executions, 6);
        static const unsigned expected[] = {3, 3, 1, 3, 3, 1};
        assert_memory_equal(sizes, expected, sizeof(expected));
        assert_string_equal(shapes, " i 1 2");
        end(v);
    }
    later = false;
}

/* PB-163. */
static void control_tensors_come_as_they_are(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(execute);
    struct serve_version *v;
    unit_succeeds(start(
        &backend,
        MODEL
        "max_batch_size: 4 sequence_batching { control_input [{ name: 'START' control [{ kind: "
        "CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }] }] } "
        "instance_group [{ count: 1 kind: KIND_CPU }] "
        "model_warmup [{ name: 'a' batch_size: 1 " INPUT("i", "TYPE_INT32", "zero_data: true")
            INPUT("START", "TYPE_INT32", "zero_data: true") "}]",
        &v));
    assert_int_equal(executions, 1);
    assert_string_equal(shapes, " i 1 2, START 1 2");
    end(v);
}

/* A sample is of no sequence that could go on: its first execution is all of it. */
static void one_iteration_warms(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(go_on);
    struct serve_version *v;
    unit_succeeds(start(&backend,
                        MODEL "max_batch_size: 4 sequence_batching { iterative_sequence: true } "
                              "instance_group [{ count: 1 kind: KIND_CPU }] "
                              "model_warmup [{ name: 'a' batch_size: 2 " INPUT(
                                  "i", "TYPE_INT32", "zero_data: true") "}]",
                        &v));
    assert_int_equal(executions, 1);
    end(v);
}

static void refuses(const char *text, struct plugin_backend *backend, enum status code,
                    const char *why, unsigned ran)
{
    struct serve_version *v;
    struct err *e = start(backend, text, &v);
    assert_non_null(e);
    assert_int_equal(err_code(e), code);
    assert_non_null(strstr(err_message(e), why));
    assert_int_equal(executions, ran);
    err_free(e);
    end(v);
}

/* MC-136. */
static void the_first_failure_ends_it(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(execute);
    static const char text[] =
        MODEL "max_batch_size: 8 model_warmup [{ name: 'a' batch_size: 2 count: 3 " INPUT(
            "i", "TYPE_INT32", "zero_data: true") "}]";
    for (int pass = 0; pass < 2; pass++) {
        later = pass == 1;
        fail_from = 2;
        refuses(text, &backend, STATUS_INVALID_ARG,
                "failed to run warmup sample 'a': cannot, 0; cannot, 1; ", 2);
    }
    fail_from = 0;
    later = false;
    backend = test_version_backend(refuse);
    refuses(text, &backend, STATUS_INVALID_ARG,
            "failed to run warmup sample 'a': not today; not today; ", 2);
}

/* PB-151. */
static void samples_must_fit_the_model(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(execute);
    refuses(MODEL "model_warmup [{ name: 'a' batch_size: 1 " INPUT("i", "TYPE_INT64",
                                                                   "zero_data: true") "}]",
            &backend, STATUS_INVALID_ARG, "data-type", 0);
    refuses(MODEL "model_warmup [{ name: 'a' batch_size: 1 " INPUT(
                "i", "TYPE_INT32", "input_data_file: 'no/such/file'") "}]",
            &backend, STATUS_NOT_FOUND, "warmup setting of input", 0);
}

UNIT_MAIN(UNIT(runs_all_samples_on_every_instance), UNIT(control_tensors_come_as_they_are),
          UNIT(one_iteration_warms), UNIT(the_first_failure_ends_it),
          UNIT(samples_must_fit_the_model))
