/* Configurations: the examples of the specification, and the index that requests use. */
#include "support/config_steps.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MYMODEL                     \
    "name: \"mymodel\"\n"           \
    "platform: \"tensorrt_plan\"\n" \
    "max_batch_size: 8\n"           \
    "input [\n"                     \
    "  {\n"                         \
    "    name: \"input0\"\n"        \
    "    data_type: TYPE_FP32\n"    \
    "    dims: [ 16 ]\n"            \
    "  },\n"                        \
    "  {\n"                         \
    "    name: \"input1\"\n"        \
    "    data_type: TYPE_FP32\n"    \
    "    dims: [ 16 ]\n"            \
    "  }\n"                         \
    "]\n"                           \
    "output [\n"                    \
    "  {\n"                         \
    "    name: \"output0\"\n"       \
    "    data_type: TYPE_FP32\n"    \
    "    dims: [ 16 ]\n"            \
    "  }\n"                         \
    "]\n"

/* MC-07; reads MC-06. */
static void minimal_example(void **state)
{
    (void)state;
    struct model_config *cfg = config_steps_load(MYMODEL);
    assert_string_equal(cfg->name, "mymodel");
    assert_string_equal(cfg->platform, "tensorrt_plan");
    assert_string_equal(cfg->backend, "tensorrt");
    assert_int_equal(cfg->max_batch_size, 8);
    assert_int_equal(cfg->scheduler, CONFIG_SCHEDULER_DEFAULT);
    assert_int_equal(cfg->input_count, 2);
    assert_int_equal(cfg->required_inputs, 2);
    assert_int_equal(cfg->output_count, 1);
    assert_string_equal(cfg->inputs[1].name, "input1");
    assert_int_equal(cfg->inputs[1].datatype, DATATYPE_FP32);
    assert_int_equal(cfg->inputs[1].rank, 1);
    assert_int_equal(cfg->inputs[1].dims[0], 16);
    assert_false(cfg->inputs[1].has_reshape);
    config_unref(cfg);
}

/* reads MC-83. */
static void version_policy_example(void **state)
{
    (void)state;
    Inference__ModelConfig *p = config_steps_fill(MYMODEL "version_policy: { all { }}\n");
    assert_int_equal(p->version_policy->policy_choice_case,
                     INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_ALL);
    config_free_proto(p);
}

/* reads MC-70, MC-71. */
static void shape_tensor_example(void **state)
{
    (void)state;
    struct model_config *cfg = config_steps_load("name: \"myshapetensormodel\"\n"
                                                 "platform: \"tensorrt_plan\"\n"
                                                 "max_batch_size: 8\n"
                                                 "input [\n"
                                                 "  {\n"
                                                 "    name: \"input0\"\n"
                                                 "    data_type: TYPE_FP32\n"
                                                 "    dims: [ -1 ]\n"
                                                 "  },\n"
                                                 "  {\n"
                                                 "    name: \"input1\"\n"
                                                 "    data_type: TYPE_INT32\n"
                                                 "    dims: [ 1 ]\n"
                                                 "    is_shape_tensor: true\n"
                                                 "  }\n"
                                                 "]\n"
                                                 "output [\n"
                                                 "  {\n"
                                                 "    name: \"output0\"\n"
                                                 "    data_type: TYPE_FP32\n"
                                                 "    dims: [ -1 ]\n"
                                                 "  }\n"
                                                 "]\n");
    assert_false(cfg->inputs[0].shape_tensor);
    assert_true(cfg->inputs[1].shape_tensor);
    assert_int_equal(cfg->outputs[0].dims[0], -1);
    config_unref(cfg);
}

/* MC-69. */
static void reshape_examples(void **state)
{
    (void)state;
    Inference__ModelConfig *p = config_steps_parse("input [\n"
                                                   "  {\n"
                                                   "    name: \"in\"\n"
                                                   "    dims: [ 1 ]\n"
                                                   "    reshape: { shape: [ ] }\n"
                                                   "  }\n"
                                                   "]\n"
                                                   "output [\n"
                                                   "  {\n"
                                                   "    name: \"in\"\n"
                                                   "    dims: [ 1 ]\n"
                                                   "    reshape: { shape: [ ] }\n"
                                                   "  }\n"
                                                   "]\n");
    struct model_config *cfg = NULL;
    assert_null(config_compile(&p, &cfg));
    assert_true(cfg->inputs[0].has_reshape && cfg->outputs[0].has_reshape);
    assert_int_equal(cfg->inputs[0].reshape_rank, 0);
    assert_int_equal(cfg->inputs[0].rank, 1);
    config_unref(cfg);
}

/* reads MC-86, MC-87, MC-88, MC-89, MC-90, PB-14, PB-18, PB-19. */
static void instance_group_examples(void **state)
{
    (void)state;
    const int32_t ids[] = {0, 1, 2};
    struct config_groups_machine three = {.gpus = ids, .gpu_count = 3};
    Inference__ModelConfig *p = config_steps_fill(MYMODEL "instance_group [\n"
                                                          "  {\n"
                                                          "    count: 2\n"
                                                          "    kind: KIND_GPU\n"
                                                          "  }\n"
                                                          "]\n");
    config_groups_fill(p, &three);
    assert_int_equal(p->instance_group[0]->n_gpus, 3);
    assert_int_equal(p->instance_group[0]->count, 2);
    config_free_proto(p);
    p = config_steps_fill(MYMODEL "instance_group [\n"
                                  "  {\n"
                                  "    count: 1\n"
                                  "    kind: KIND_GPU\n"
                                  "    gpus: [ 0 ]\n"
                                  "  },\n"
                                  "  {\n"
                                  "    count: 2\n"
                                  "    kind: KIND_GPU\n"
                                  "    gpus: [ 1, 2 ]\n"
                                  "  }\n"
                                  "]\n");
    config_groups_fill(p, &three);
    assert_null(config_groups_check(p, &three));
    assert_int_equal(p->n_instance_group, 2);
    assert_int_equal(p->instance_group[0]->n_gpus, 1);
    assert_int_equal(p->instance_group[1]->n_gpus, 2);
    assert_int_equal(p->instance_group[1]->gpus[1], 2);
    config_free_proto(p);
    p = config_steps_fill(MYMODEL "instance_group [\n"
                                  "  {\n"
                                  "    count: 2\n"
                                  "    kind: KIND_CPU\n"
                                  "  }\n"
                                  "]\n");
    config_groups_fill(p, &three);
    assert_int_equal(p->instance_group[0]->kind, INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_CPU);
    assert_int_equal(p->instance_group[0]->n_gpus, 0);
    config_free_proto(p);
}

/* reads MC-99, MC-101, MC-108. */
static void dynamic_batching_examples(void **state)
{
    (void)state;
    struct model_config *cfg = config_steps_load(MYMODEL "dynamic_batching { }");
    assert_int_equal(cfg->scheduler, CONFIG_SCHEDULER_DYNAMIC);
    config_unref(cfg);
    cfg = config_steps_load(MYMODEL "dynamic_batching {\n"
                                    "  preferred_batch_size: [ 4, 8 ]\n"
                                    "  max_queue_delay_microseconds: 100\n"
                                    "}\n");
    const Inference__ModelDynamicBatching *d = cfg->proto->dynamic_batching;
    assert_int_equal(d->n_preferred_batch_size, 2);
    assert_int_equal(d->preferred_batch_size[1], 8);
    assert_int_equal(d->max_queue_delay_microseconds, 100);
    config_unref(cfg);
}

/* */
static void slips_of_the_texts(void **state)
{
    (void)state;
    assert_string_equal(config_steps_error("version_policy { latest { num_version: 1 } }", NULL),
                        "config.pbtxt:1:27: version_policy.latest: expected a field of Latest, "
                        "found 'num_version'; did you mean "
                        "'num_versions'?");
    Inference__ModelConfig *p = config_steps_parse("name: 'm'");
    assert_int_equal(p->max_batch_size, 0);
    config_free_proto(p);
}

/* RX-29, X-07; reads X-08. */
static void load_example(void **state)
{
    (void)state;
    const char *wrong =
        "{\"name\": \"mymodel\", \"backend\": \"onnxruntime\", \"inputs\": [{\"name\": \"INPUT0\", "
        "\"datatype\": \"FP32\", \"shape\": [ 1 ]}]}";
    Inference__ModelConfig *p = NULL;
    struct err *e = config_parse_json(wrong, strlen(wrong), &p);
    assert_string_equal(
        err_message(e),
        "model configuration: expected a field of ModelConfig, found \"inputs\"; did you mean "
        "\"input\"?");
    err_free(e);
    const char *right =
        "{\"name\": \"mymodel\", \"backend\": \"onnxruntime\", \"input\": [{\"name\": \"INPUT0\", "
        "\"data_type\": \"TYPE_FP32\", \"dims\": [ 1 ]}]}";
    assert_null(config_parse_json(right, strlen(right), &p));
    assert_string_equal(p->backend, "onnxruntime");
    assert_int_equal(p->input[0]->data_type, INFERENCE__DATA_TYPE__TYPE_FP32);
    config_free_proto(p);
}

/* A model with `count` inputs and outputs. */
static struct model_config *wide(unsigned count)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_puts(&text, "name: 'wide' backend: 'x'");
    for (unsigned i = 0; i < count; i++)
        strbuf_printf(&text,
                      "input { name: 'in%u' data_type: TYPE_INT8 dims: %u %s } output { name: "
                      "'out%u' data_type: TYPE_INT8 "
                      "dims: 1 }",
                      i, i + 1, i % 2 ? "optional: true" : "", i);
    struct model_config *cfg = config_steps_load(strbuf_str(&text));
    strbuf_fini(&text);
    return cfg;
}

static void names_are_found(void **state)
{
    (void)state;
    const unsigned counts[] = {1, 8, 9, 100};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct model_config *cfg = wide(counts[c]);
        assert_int_equal(cfg->required_inputs, (counts[c] + 1) / 2);
        for (unsigned i = 0; i < counts[c]; i++) {
            char name[16];
            int n = snprintf(name, sizeof(name), "in%uXX", i) -
                    2; /* the name need not end where it ends */
            assert_int_equal(config_input(cfg, name, (size_t)n), i);
            assert_int_equal(config_output(cfg, name, (size_t)n), -1);
            assert_int_equal(cfg->inputs[i].dims[0], i + 1);
            n = snprintf(name, sizeof(name), "out%u", i);
            assert_int_equal(config_output(cfg, name, (size_t)n), i);
        }
        assert_int_equal(config_input(cfg, "", 0), -1);
        assert_int_equal(config_input(cfg, "in", 2), -1);
        config_unref(config_ref(cfg));
        config_unref(cfg);
    }
}

static void same_names_are_refused(void **state)
{
    (void)state;
    Inference__ModelConfig *p =
        config_steps_parse("name: 'm' input { name: 'a' } input { name: 'a' }");
    struct model_config *cfg = NULL;
    struct err *e = config_compile(&p, &cfg);
    assert_string_equal(err_message(e), "m: expected different names of inputs, found 'a' twice");
    err_free(e);
    assert_non_null(p); /* still ours */
    config_free_proto(p);
}

static void copies_are_independent(void **state)
{
    (void)state;
    Inference__ModelConfig *p = config_steps_fill(MYMODEL);
    Inference__ModelConfig *copy = config_copy_proto(p);
    char *a = config_print_json(p, NULL);
    config_free_proto(p);
    size_t len;
    char *b = config_print_json(copy, &len);
    assert_string_equal(a, b);
    assert_int_equal(len, strlen(b));
    config_free_proto(copy);
    mem_free(a);
    mem_free(b);
}

/* Whoever asks has the same text, also when the configuration has gone. */
static void text_is_made_once(void **state)
{
    (void)state;
    Inference__ModelConfig *p = config_steps_fill(MYMODEL);
    char *printed = config_print_json(p, NULL);
    struct model_config *cfg = NULL;
    err_free(config_compile(&p, &cfg));
    assert_non_null(cfg);
    struct buf *first = config_text(cfg);
    struct buf *second = config_text(cfg);
    assert_ptr_equal(first, second);
    buf_unref(second);
    config_unref(cfg);
    assert_int_equal(first->size, strlen(printed));
    assert_memory_equal(first->data, printed, first->size);
    buf_unref(first);
    mem_free(printed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minimal_example),         cmocka_unit_test(version_policy_example),
        cmocka_unit_test(shape_tensor_example),    cmocka_unit_test(reshape_examples),
        cmocka_unit_test(instance_group_examples), cmocka_unit_test(dynamic_batching_examples),
        cmocka_unit_test(slips_of_the_texts),      cmocka_unit_test(load_example),
        cmocka_unit_test(text_is_made_once),       cmocka_unit_test(names_are_found),
        cmocka_unit_test(same_names_are_refused),  cmocka_unit_test(copies_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
