/* Rules that the reference does not have, or has elsewhere; those that it shares are compared with
 * it in tests/50_config. */
#include "support/config_steps.h"

#include "base/strbuf.h"
#include "model/datatype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define IO                                                                                      \
    "input { name: 'i' data_type: TYPE_FP32 dims: 4 } output { name: 'o' data_type: TYPE_FP32 " \
    "dims: 4 } "
#define OWN "backend: 'own' max_batch_size: 8 "

struct rule {
    const char *text;
    const char *error; /* "" = accepted */
};

static const struct rule rules[] = {
    {OWN IO, ""},
    {OWN "name: 'other' " IO,
     "unexpected directory name 'm' for model 'other', directory name must equal model name"},
    {OWN "input { name: 'i' data_type: TYPE_FP32 dims: 4 }", ""},
    {OWN "output { name: 'i' data_type: TYPE_FP32 dims: 4 }", ""},
    {"backend: '../x' " IO, "backend '../x' must be a name, not a path for m"},
    {"backend: '..' " IO, "backend '..' must be a name, not a path for m"},
    {"platform: 'tensorflow' " IO, "unexpected platform type 'tensorflow' for m"},
    {"platform: 'any' " OWN IO, ""},
    {"backend: 'tensorrt' platform: 'caffe2_netdef' " IO,
     "unexpected 'platform' and 'backend' pair, got:caffe2_netdef, tensorrt"},
    {"backend: 'tensorflow' " IO, "unexpected 'platform' and 'backend' pair, got:, tensorflow"},
    {OWN IO "ensemble_scheduling { step { model_name: 'x' } }",
     "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble"},
    {OWN IO "version_policy { specific { versions: 0 } }",
     "version policy 'specific' must list versions >= 1, got 0 for m"},
    {OWN IO "default_model_filename: '/etc/passwd'",
     "default_model_filename '/etc/passwd' must stay inside the model's directory for m"},
    {OWN IO "default_model_filename: '..'",
     "default_model_filename '..' must stay inside the model's directory for m"},
    {OWN IO "default_model_filename: 'a/..b/...'", ""},
    {OWN IO "cc_model_filenames { key: '7.5' value: 'a/../../b' }",
     "cc_model_filenames 'a/../../b' must stay inside the model's directory for m"},
    {OWN "input { name: 'i' data_type: TYPE_FP32 dims: 4 } output { name: 'o' data_type: TYPE_FP32 "
         "dims: 4 label_filename: '../l' }",
     "label_filename '../l' must stay inside the model's directory for m"},
    {OWN
     "input { name: 'i' data_type: 99 dims: 4 } output { name: 'o' data_type: TYPE_FP32 dims: 4 }",
     "model input 'i' has unknown 'data_type' 99 for m"},
    {OWN "input { name: 'i' data_type: TYPE_FP32 format: 7 dims: 4 } output { name: 'o' data_type: "
         "TYPE_FP32 dims: 4 }",
     "model input 'i' has unknown 'format' 7 for m"},
    {OWN "input { name: 'i' data_type: TYPE_FP32 dims: [ 4294967296, 4294967296 ] reshape { shape: "
         "1 } } "
         "output { name: 'o' data_type: TYPE_FP32 dims: 4 }",
     "model input 'i' has more elements than an int64 can count for m"},
    {OWN IO "dynamic_batching { default_queue_policy { timeout_action: 5 } }",
     "queue policy must have REJECT or DELAY as timeout action, got 5 for m"},
    {OWN IO "sequence_batching { oldest { max_candidate_sequences: -1 } }",
     "sequence batching max candidate sequences must be non-negative for m"},
    {OWN IO "sequence_batching { control_input { name: 'c' control { kind: 9 } } }",
     "sequence batching has a control of unknown kind 9 for m"},
    {OWN IO "sequence_batching { control_input { name: 'c' control { kind: -5 } } }",
     "sequence batching has a control of unknown kind -5 for m"},
    {OWN IO "sequence_batching { direct { minimum_slot_utilization: nan } }",
     "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m"},
    {OWN IO "sequence_batching { state { initial_state { data_file: '../s' } } }",
     "initial state data_file '../s' must stay inside the model's directory for m"},
    {OWN IO "sequence_batching { control_input { name: 'c' control { kind: CONTROL_SEQUENCE_CORRID "
            "data_type: TYPE_STRING } } }",
     ""},
    {OWN
     "input { name: 'i' data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 4, 4, 3 ] } input { name: "
     "'j' data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 4, 4 ] } output { name: 'o' "
     "data_type: TYPE_FP32 dims: 4 }",
     ""},
    {"platform: 'tensorrt_plan' input { name: 'i' data_type: TYPE_INT32 dims: 4 is_shape_tensor: "
     "true "
     "} input { name: 'j' data_type: TYPE_FP32 dims: [ 4, 4, 4 ] is_non_linear_format_io: true } "
     "output { name: 'o' data_type: TYPE_FP32 dims: 4 }",
     ""},
    {OWN
     "input { name: 'i' data_type: TYPE_INT32 dims: 4 is_shape_tensor: true } output { name: 'o' "
     "data_type: TYPE_FP32 dims: 4 }",
     "shape tensors are only supported for TensorRT platform for m"},
    {"platform: 'ensemble' " IO "ensemble_scheduling { step { model_name: 'x' model_version: -1 "
     "input_map { key: 'a' value: 'i' "
     "} input_map { key: 'b' value: 'q' } output_map { key: 'c' value: 'o' } output_map { key: 'd' "
     "value: 'r' } } step { model_name: 'y' model_version: -1 input_map { key: 'a' value: 'r' } "
     "output_map { key: 'b' value: 'q' } } }",
     "output 'o' for ensemble 'm' is not written: at least one of its depending tensors, 'r', is "
     "not "
     "connected"},
    {OWN IO "batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'c' data_type: TYPE_FP32 "
            "source_input: 'i' }",
     ""},
    {OWN IO "batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'c' data_type: TYPE_FP32 "
            "source_input: [ 'i', 'i' ] }",
     "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 2 for m"},
    {OWN IO "batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: 'o' source_input: [ "
            "'i', 'i' ] }",
     "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 2 for m"},
    {OWN IO "batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: 'o' }",
     "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m"},
    {OWN IO "instance_group { kind: 7 }", "instance group m_0 of model m has unexpected kind 7"},
    {OWN IO "instance_group { kind: KIND_CPU count: 5000 }",
     "instance group m_0 of model m asks for instance 5000, at most 4096 are possible"},
    {OWN IO "model_metrics { metric_control { } }",
     "metric control must specify 'metric_identifier'"},
    {OWN IO "model_metrics { metric_control { metric_identifier { } } }",
     "metric identifier must specify non-empty 'family'"},
    {OWN IO "model_metrics { metric_control { metric_identifier { family: 'f' } } }",
     "metric control must specify 'histogram_options'"},
    {OWN IO
     "model_metrics { metric_control { metric_identifier { family: 'f' } histogram_options { } } }",
     "histogram options must specify non-empty 'buckets'"},
    {"platform: 'ensemble' " IO "ensemble_scheduling { step { model_name: 'x' model_version: -2 "
     "input_map { key: 'a' value: 'i' } "
     "output_map { key: 'b' value: 'o' } } }",
     "'model_version' must be -1 or a version in step 0 of ensemble 'm'"},
    {IO "ensemble_scheduling { step { model_name: 'x' model_version: -1 input_map { key: 'a' "
        "value: 'i' } "
        "output_map { key: 'b' value: 'o' } } }",
     ""},
    {"platform: 'pytorch_libtorch' " IO, ""}, /* which names there are is the backend's to know */
    {"platform: 'tensorrt_plan' " IO "instance_group { kind: KIND_CPU profile: '0' profile: '12' }",
     ""},
    {"platform: 'tensorrt_plan' " IO "instance_group { kind: KIND_CPU profile: '-1' }",
     "instance group m_0 of model m and platform tensorrt_plan specifies invalid profile -1. The "
     "field should contain the string "
     "representation of a non-negative integer."},
};

#define WARM(body)       OWN IO "model_warmup { name: 'w' " body " }"
#define ENTRY(key, body) "inputs { key: '" key "' value { " body " } } "
#define FINE             "data_type: TYPE_FP32 dims: 4 zero_data: true"

static const struct rule warmup_rules[] = {
    {WARM("batch_size: 1 " ENTRY("i", FINE)), ""},
    {WARM("batch_size: 8 count: 3 " ENTRY("i", "data_type: TYPE_FP32 dims: 4 random_data: false")),
     ""},
    {WARM(ENTRY("i", FINE)), "warmup sample 'w' must have batch_size >= 1 for m"},
    {WARM("batch_size: 9 " ENTRY("i", FINE)),
     "warmup sample 'w' must have batch_size <= max batch size for m"},
    {"max_batch_size: 0 backend: 'own' " IO
     "model_warmup { name: 'w' batch_size: 2 " ENTRY("i", FINE) "}",
     "warmup sample 'w' must have batch_size 1, as the model does not support batching, for m"},
    {WARM("batch_size: 1"), "warmup sample 'w' must specify input 'i' for m"},
    {WARM("batch_size: 1 " ENTRY("i", FINE)) " sequence_batching { control_input { name: 'c' } }",
     "warmup sample 'w' must specify input 'c' for m"},
    {WARM("batch_size: 1 " ENTRY("i", FINE)
              ENTRY("c", FINE)) " sequence_batching { control_input { name: 'c' } }",
     ""},
    {WARM("batch_size: 1 " ENTRY("i", "dims: 4 zero_data: true")),
     "warmup sample 'w' must specify 'data_type' of input 'i' for m"},
    {WARM("batch_size: 1 " ENTRY("i", "data_type: TYPE_FP32 dims: 4 input_data_file: '../../x'")),
     "input_data_file '../../x' must stay inside the model's directory for m"},
    {WARM("batch_size: 1 count: 100000 " ENTRY("i", FINE)),
     "warmup sample 'w' must have batch_size and count <= 65536 for m"},
};

static void play(const struct rule *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(config_steps_error(all[i].text, NULL), all[i].error) != 0)
            fail_msg("%s\nexpected: %s\nfound: %s", all[i].text, all[i].error,
                     config_steps_error(all[i].text, NULL));
}

/* MC-08, MC-10, MC-129; reads PB-20, PB-22. */
static void own_rules(void **state)
{
    (void)state;
    play(rules, sizeof(rules) / sizeof(rules[0]));
}

/* PB-151, PB-158, PB-160, PB-161, PB-163, X-36. */
static void warmup(void **state)
{
    (void)state;
    play(warmup_rules, sizeof(warmup_rules) / sizeof(warmup_rules[0]));
}

/* PB-06; reads PB-14, PB-18. */
static void gpus(void **state)
{
    (void)state;
    const int32_t ids[] = {0, 2};
    struct config_groups_machine two = {.gpus = ids, .gpu_count = 2, .min_compute_capability = 6.0};
    assert_string_equal(
        config_steps_error(OWN IO "instance_group { kind: KIND_GPU gpus: [ 2, 0 ] }", &two), "");
    assert_string_equal(
        config_steps_error(OWN IO "instance_group { kind: KIND_GPU gpus: [ 0, 1 ] }", &two),
        "instance group m_0 of model m specifies invalid or unsupported gpu id 1. GPUs with at "
        "least the minimum "
        "required CUDA compute compatibility of 6.000000 are: 0, 2");
    assert_string_equal(
        config_steps_error(OWN IO "instance_group { kind: KIND_GPU }", NULL),
        "instance group m_0 of model m has kind KIND_GPU but no GPUs are available");
}

/* The table of the specification, column by column, its datatypes from `first` to `last`; one
 * letter a datatype in the order of the numbers, '-' = no entry. */
static void datatypes_by_platform(int first, int last)
{
    static const struct {
        const char *platform;
        const char *types;
    } table[] = {
        /*                          BUuuuIiiiHFDS   bool, uint8..64, int8..64, fp16, fp32, fp64,
         * string */
        {"tensorrt_plan", "+----+-+-++--"},         {"tensorflow_graphdef", "+++++++++++++"},
        {"tensorflow_savedmodel", "+++++++++++++"}, {"caffe2_netdef", "+++--+++++++-"},
        {"onnxruntime_onnx", "+++++++++++++"},      {"pytorch_libtorch", "++---++++++++"},
    };
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++)
        for (int type = first; type <= last; type++) {
            char text[256];
            char expected[160] = "";
            snprintf(text, sizeof(text),
                     "platform: '%s' input { name: 'i__0' data_type: %d dims: 4 } output { name: "
                     "'o__0' data_type: TYPE_FP32 dims: 4 }",
                     table[row].platform, type);
            if (table[row].types[type - 1] == '-')
                snprintf(
                    expected, sizeof(expected),
                    "model input 'i__0' has data type %s, which platform %s does not support for m",
                    datatype_config_name((enum datatype)type), table[row].platform);
            assert_string_equal(config_steps_error(text, NULL), expected);
        }
}

/* MC-21, MC-47, MC-48, MC-49, MC-50, MC-51, MC-52, MC-53, MC-54, MC-55, MC-56. */
static void booleans_and_integers_by_platform(void **state)
{
    (void)state;
    datatypes_by_platform(1, 9);
}

/* MC-57, MC-58, MC-59, MC-60, X-17. */
static void other_datatypes_by_platform(void **state)
{
    (void)state;
    datatypes_by_platform(10, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_rules),
        cmocka_unit_test(warmup),
        cmocka_unit_test(gpus),
        cmocka_unit_test(booleans_and_integers_by_platform),
        cmocka_unit_test(other_datatypes_by_platform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
