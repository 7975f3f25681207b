/* What is filled in and guessed. The same is compared with the reference, for its backends, in
 * tests/50_config. */
#include "support/config_steps.h"

#include "base/mem.h"
#include "model/config_fill.h"
#include "model/config_guess.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define KIND(k) INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_##k

/* MC-09, MR-65, PB-165, X-13, X-37; reads MR-29, MR-30, MR-31, MR-33, MR-34. */
static void platforms(void **state)
{
    (void)state;
    static const char *const rows[][4] = {
        /* given, platform, backend, file */
        {"platform: 'tensorrt_plan'", "tensorrt_plan", "tensorrt", "model.plan"},
        {"platform: 'tensorflow_graphdef'", "tensorflow_graphdef", "tensorflow", "model.graphdef"},
        {"platform: 'tensorflow_savedmodel'", "tensorflow_savedmodel", "tensorflow",
         "model.savedmodel"},
        {"platform: 'onnxruntime_onnx'", "onnxruntime_onnx", "onnxruntime", "model.onnx"},
        {"platform: 'pytorch_libtorch'", "pytorch_libtorch", "pytorch", "model.pt"},
        {"platform: 'torch_aoti'", "torch_aoti", "pytorch", "model.pt2"},
        {"platform: 'caffe2_netdef'", "caffe2_netdef", "onnxruntime", "model.netdef"},
        {"platform: 'custom'", "custom", "custom", "libcustom.so"},
        {"backend: 'onnxruntime'", "onnxruntime_onnx", "onnxruntime", "model.onnx"},
        {"backend: 'python'", "", "python", "model.py"},
        {"backend: 'openvino'", "", "openvino", "model.xml"},
        {"backend: 'identity'", "", "identity", ""},
        {"backend: 'pytorch' runtime: 'model.py'", "pytorch_libtorch", "pytorch", ""},
        {"platform: 'onnxruntime_onnx' default_model_filename: 'x'", "onnxruntime_onnx",
         "onnxruntime", "x"},
        {"default_model_filename: 'model.onnx'", "onnxruntime_onnx", "onnxruntime", "model.onnx"},
        {"backend: 'tensorflow' default_model_filename: 'model.graphdef'", "tensorflow_graphdef",
         "tensorflow", "model.graphdef"},
        {"platform: 'ensemble'", "ensemble", "", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *p = config_steps_fill(rows[i][0]);
        assert_string_equal(p->platform, rows[i][1]);
        assert_string_equal(p->backend, rows[i][2]);
        assert_string_equal(p->default_model_filename, rows[i][3]);
        assert_string_equal(p->name, "m");
        config_free_proto(p);
    }
}

/* reads MC-37, MC-38. */
static void guesses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *entry;
        const char *backend; /* "" = no guess */
    } rows[] = {
        {"", "model.onnx", "onnxruntime"},
        {"", "model.onnx/", "onnxruntime"},
        {"", "model.plan", "tensorrt"},
        {"", "model.savedmodel/", "tensorflow"},
        {"", "model.graphdef", "tensorflow"},
        {"", "model.pt", "pytorch"},
        {"", "model.xml", "openvino"},
        {"", "model.py", "python"},
        {"max_batch_size: 3", "model.onnx", "onnxruntime"},
        {"backend: 'tensorflow'", "model.savedmodel/", "tensorflow"},
        {"backend: 'own'", "model.onnx", "own"},
        {"platform: 'tensorrt_plan'", "model.onnx", ""},
        {"default_model_filename: 'x'", "model.onnx", ""},
        {"ensemble_scheduling { }", "model.onnx", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *p = config_steps_parse(rows[i].text);
        const char *const entries[] = {"other", rows[i].entry, "model.onnx.data"};
        assert_null(config_guess_backend(p, "m", entries, 3));
        assert_string_equal(p->backend, rows[i].backend);
        config_free_proto(p);
    }
}

/* MC-42. */
static void nothing_to_guess_from(void **state)
{
    (void)state;
    static const char *const wrong_form[] = {"model.savedmodel", "model.graphdef/", "model.plan/",
                                             "model.pt/",        "model.onnx.data", "model.on",
                                             "model.netdef",     "libcustom.so"};
    for (size_t i = 0; i < sizeof(wrong_form) / sizeof(wrong_form[0]); i++) {
        Inference__ModelConfig *p = config_new_proto();
        struct err *e = config_guess_backend(p, "m", &wrong_form[i], 1);
        assert_string_equal(err_message(e),
                            "Invalid model name: Could not determine backend for model 'm' with no "
                            "backend in model configuration. "
                            "Expected model name of the form 'model.<backend_name>'.");
        err_free(e);
        config_free_proto(p);
    }
    Inference__ModelConfig *p = config_new_proto();
    assert_null(config_guess_backend(p, "m.identity", NULL, 0));
    assert_string_equal(p->backend, "identity");
    assert_string_equal(p->default_model_filename, "model.identity");
    config_free_proto(p);
}

/* reads PB-51, X-38. */
static void version_policies(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned num_versions; /* 0 = another policy */
    } rows[] = {
        {"backend: 'x'", 1},
        {"backend: 'x' version_policy { }", 1},
        {"backend: 'x' version_policy { latest { } }", 1},
        {"backend: 'x' version_policy { latest { num_versions: 3 } }", 3},
        {"backend: 'x' version_policy { all { } }", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *p = config_steps_fill(rows[i].text);
        bool latest = p->version_policy->policy_choice_case ==
                      INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST;
        assert_int_equal(latest ? p->version_policy->latest->num_versions : 0,
                         rows[i].num_versions);
        config_free_proto(p);
    }
}

/* X-32; reads PB-95, PB-129, PB-135. */
static void batchers(void **state)
{
    (void)state;
    Inference__ModelConfig *p =
        config_steps_fill("backend: 'x' max_batch_size: 8 dynamic_batching { }");
    assert_int_equal(p->dynamic_batching->n_preferred_batch_size, 1);
    assert_int_equal(p->dynamic_batching->preferred_batch_size[0], 8);
    config_free_proto(p);
    p = config_steps_fill("backend: 'x' dynamic_batching { }");
    assert_int_equal(p->dynamic_batching->n_preferred_batch_size, 0);
    config_free_proto(p);
    p = config_steps_fill("backend: 'x' max_batch_size: 4 sequence_batching { oldest { } }");
    assert_int_equal(p->sequence_batching->oldest->preferred_batch_size[0], 4);
    assert_int_equal(p->sequence_batching->max_sequence_idle_microseconds, 1000000);
    config_free_proto(p);
}

/* reads PB-81, PB-83, PB-84, X-30. */
static void pinned_memory(void **state)
{
    (void)state;
    Inference__ModelConfig *p =
        config_steps_fill("backend: 'x' optimization { input_pinned_memory { } }");
    assert_false(p->optimization->input_pinned_memory->enable); /* present without enable = false */
    assert_true(p->optimization->output_pinned_memory->enable); /* absent = true */
    config_free_proto(p);
    p = config_steps_fill("platform: 'ensemble' ensemble_scheduling { }");
    assert_null(p->optimization);
    config_free_proto(p);
}

static void filling_twice_changes_nothing(void **state)
{
    (void)state;
    Inference__ModelConfig *p =
        config_steps_fill("platform: 'onnxruntime_onnx' max_batch_size: 8 dynamic_batching { }"
                          "instance_group { } instance_group { kind: KIND_CPU count: 2 }");
    config_groups_fill(p, NULL);
    char *once = config_print_json(p, NULL);
    config_fill_defaults(p, "m");
    config_groups_fill(p, NULL);
    char *twice = config_print_json(p, NULL);
    assert_string_equal(once, twice);
    mem_free(once);
    mem_free(twice);
    config_free_proto(p);
}

static const int32_t two_ids[] = {0, 1};
static const struct config_groups_machine two_gpus = {.gpus = two_ids, .gpu_count = 2};

/* PB-11; reads PB-05, PB-13, PB-17, X-20. */
static void groups_without_gpu(void **state)
{
    (void)state;
    Inference__ModelConfig *p = config_steps_fill("backend: 'x'");
    config_groups_fill(p, NULL);
    assert_int_equal(p->n_instance_group, 1);
    assert_string_equal(p->instance_group[0]->name, "m");
    assert_int_equal(p->instance_group[0]->kind, KIND(CPU));
    assert_int_equal(p->instance_group[0]->count, 1);
    config_free_proto(p);
    p = config_steps_fill("backend: 'x' instance_group [ { count: 2 }, { name: 'mine' gpus: [ 0 ] "
                          "}, { kind: KIND_MODEL } ]");
    config_groups_fill(p, NULL);
    assert_string_equal(p->instance_group[0]->name, "m_0");
    assert_string_equal(p->instance_group[1]->name, "mine");
    assert_int_equal(p->instance_group[1]->kind, KIND(CPU));
    assert_string_equal(p->instance_group[2]->name, "m_2");
    assert_int_equal(p->instance_group[2]->kind, KIND(MODEL));
    config_free_proto(p);
}

/* Whether anybody need look for GPUs: who cannot be on one costs nothing. */
static void groups_that_ask_for_gpus(void **state)
{
    (void)state;
    static const struct config_groups_wish cpu = {.kind = KIND(CPU)};
    static const struct config_groups_wish gpu = {.kind = KIND(GPU)}, any = {.kind = KIND(AUTO)};
    struct {
        const char *groups;
        bool alone, on_cpu; /* without a wish; with one for the CPU */
    } const cases[] = {
        {"", true, false},
        {"instance_group [ { count: 2 } ]", true, false},
        {"instance_group [ { kind: KIND_CPU } ]", false, false},
        {"instance_group [ { kind: KIND_MODEL } ]", false, false},
        {"instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU } ]", true, true},
        {"ensemble_scheduling { }", false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128];
        snprintf(text, sizeof(text), "backend: 'x' %s", cases[i].groups);
        Inference__ModelConfig *p = config_steps_parse(text);
        assert_int_equal(config_groups_ask(p, NULL, 0), cases[i].alone);
        assert_int_equal(config_groups_ask(p, &gpu, 1), cases[i].alone);
        assert_int_equal(config_groups_ask(p, &any, 1), cases[i].alone);
        assert_int_equal(config_groups_ask(p, &cpu, 1), cases[i].on_cpu);
        config_free_proto(p);
    }
    struct config_groups_machine machine = two_gpus;
    machine.wishes = &cpu;
    machine.wish_count = 1;
    Inference__ModelConfig *p = config_steps_fill("backend: 'x' instance_group [ { count: 2 } ]");
    config_groups_fill(p, &machine);
    assert_int_equal(p->instance_group[0]->kind, KIND(CPU)); /* it could not run there */
    config_free_proto(p);
}

/* reads MC-86, PB-05, PB-19, PB-178. */
static void groups_with_gpus(void **state)
{
    (void)state;
    Inference__ModelConfig *p = config_steps_fill("backend: 'x'");
    config_groups_fill(p, &two_gpus);
    assert_int_equal(p->instance_group[0]->kind, KIND(GPU));
    assert_int_equal(p->instance_group[0]->n_gpus, 2);
    assert_null(config_groups_check(p, &two_gpus));
    config_free_proto(p);
    p = config_steps_fill(
        "backend: 'x' instance_group [ { gpus: [ 1 ] }, { gpus: [ 0, 5 ] }, { kind: KIND_CPU } ]");
    config_groups_fill(p, &two_gpus);
    assert_int_equal(p->instance_group[0]->kind, KIND(GPU));
    assert_int_equal(p->instance_group[0]->n_gpus, 1);
    assert_int_equal(p->instance_group[1]->kind, KIND(CPU)); /* one missing = CPU */
    assert_int_equal(p->instance_group[2]->n_gpus, 0);
    config_free_proto(p);
}

static void groups_as_the_backend_wishes(void **state)
{
    (void)state;
    const int32_t wished[] = {1, 7};
    const struct config_groups_wish wishes[] = {{KIND(GPU), 3, wished, 2}, {KIND(CPU), 4, NULL, 0}};
    struct config_groups_machine machine = two_gpus;
    machine.wishes = wishes;
    machine.wish_count = 2;
    Inference__ModelConfig *p = config_steps_fill("backend: 'x'");
    config_groups_fill(p, &machine);
    assert_int_equal(p->instance_group[0]->kind, KIND(GPU));
    assert_int_equal(p->instance_group[0]->count, 3);
    assert_int_equal(p->instance_group[0]->n_gpus, 1);
    assert_int_equal(p->instance_group[0]->gpus[0], 1);
    config_free_proto(p);
    machine.gpu_count = 0;
    p = config_steps_fill("backend: 'x'");
    config_groups_fill(p, &machine);
    assert_int_equal(p->instance_group[0]->kind, KIND(CPU));
    assert_int_equal(p->instance_group[0]->count, 4);
    config_free_proto(p);
    p = config_steps_fill(
        "backend: 'x' instance_group [ { kind: KIND_CPU }, { kind: KIND_CPU count: 1 } ]");
    config_groups_fill(p, &machine);
    assert_int_equal(p->instance_group[0]->count, 4);
    assert_int_equal(p->instance_group[1]->count, 1);
    config_free_proto(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(platforms),
        cmocka_unit_test(guesses),
        cmocka_unit_test(nothing_to_guess_from),
        cmocka_unit_test(version_policies),
        cmocka_unit_test(batchers),
        cmocka_unit_test(pinned_memory),
        cmocka_unit_test(filling_twice_changes_nothing),
        cmocka_unit_test(groups_without_gpu),
        cmocka_unit_test(groups_that_ask_for_gpus),
        cmocka_unit_test(groups_with_gpus),
        cmocka_unit_test(groups_as_the_backend_wishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
