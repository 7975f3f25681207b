/* What the backend `onnxruntime` makes of `execution_accelerators`, up to the door of ONNX Runtime:
 * the one here is for processors, and says that it has no CUDA. */
#include "common/berr.h"
#include "onnxruntime/accelerators.h"
#include "onnxruntime_opened.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct accelerators_gpu gpu = {.device = 3};

/* What becomes of this `execution_accelerators`, and these parameters of the model. */
static TRITONSERVER_Error *add(const char *accelerators, const char *parameters,
                               const struct accelerators_gpu *on)
{
    char text[1024];
    OrtSessionOptions *options = NULL;
    snprintf(text, sizeof text,
             "{\"optimization\": {\"execution_accelerators\": {%s}}, \"parameters\": {%s}}",
             accelerators, parameters);
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    assert_null(ort.api->CreateSessionOptions(&options));
    TRITONSERVER_Error *err = accelerators_add(&ort, yyjson_doc_get_root(doc), on, options);
    ort.api->ReleaseSessionOptions(options);
    yyjson_doc_free(doc);
    return err;
}

#define ON_GPU(one) "\"gpu_execution_accelerator\": [" one "]"
#define TENSORRT(key, value) \
    ON_GPU("{\"name\": \"tensorrt\", \"parameters\": {\"" key "\": \"" value "\"}}")
#define CUDA(key, value) \
    ON_GPU("{\"name\": \"cuda\", \"parameters\": {\"" key "\": \"" value "\"}}")
#define PARAMETER(key, value) "\"" key "\": {\"string_value\": \"" value "\"}"

static void test_those_of_the_other_kind_are_not_looked_at(void **state)
{
    (void)state;
    assert_null(add(ON_GPU("{\"name\": \"x\"}"), "", NULL));
    assert_says(add("\"cpu_execution_accelerator\": [{\"name\": \"x\"}]", "", NULL),
                TRITONSERVER_ERROR_INVALID_ARG, "unknown Execution Accelerator 'x' is requested");
    assert_says(add("\"cpu_execution_accelerator\": [{\"name\": \"x\"}]", "", &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, "CUDA");
}

static void test_an_unknown_one_is_an_error(void **state)
{
    (void)state;
    assert_says(add(ON_GPU("{\"name\": \"x\"}"), "", &gpu), TRITONSERVER_ERROR_INVALID_ARG,
                "unknown Execution Accelerator 'x' is requested");
    assert_says(add(ON_GPU("{\"name\": \"cuda\"}, {}"), "", &gpu), TRITONSERVER_ERROR_INVALID_ARG,
                "unknown Execution Accelerator '' is requested");
}

static void test_parameters_of_tensorrt(void **state)
{
    (void)state;
    static const char none[] = "'tensorrt' is requested, but this ONNX Runtime was built without";
    assert_says(add(ON_GPU("{\"name\": \"tensorrt\"}"), "", &gpu), TRITONSERVER_ERROR_UNSUPPORTED,
                none);
    assert_says(add(TENSORRT("precision_mode", "FP16"), "", &gpu), TRITONSERVER_ERROR_UNSUPPORTED,
                none);
    assert_says(add(TENSORRT("max_workspace_size_bytes", "1"), "", &gpu),
                TRITONSERVER_ERROR_UNSUPPORTED, none);
    assert_says(add(TENSORRT("trt_builder_optimization_level", "5"), "", &gpu),
                TRITONSERVER_ERROR_UNSUPPORTED, none);
    assert_says(add(TENSORRT("precision_mode", "FP8"), "", &gpu), TRITONSERVER_ERROR_INVALID_ARG,
                "unsupported precision mode 'FP8' is requested");
    assert_says(add(TENSORRT("segment_size", "1"), "", &gpu), TRITONSERVER_ERROR_INVALID_ARG,
                "unknown parameter 'segment_size' is provided for TensorRT Execution Accelerator");
}

/* Files of the server, and addresses in its memory. */
static void test_what_leads_out_of_the_model_is_refused(void **state)
{
    (void)state;
    static const char leads[] = "leads out of the model's directory";
    assert_says(add(TENSORRT("trt_engine_cache_path", "/tmp"), "", &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, leads);
    assert_says(add(TENSORRT("trt_extra_plugin_lib_paths", "a.so"), "", &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, leads);
    assert_says(add(TENSORRT("int8_calibration_table_name", "a"), "", &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, leads);
    assert_says(add(TENSORRT("trt_engine_cache_enable", "1"), "", &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, leads);
    assert_says(add(TENSORRT("trt_onnx_bytestream", "4096"), "", &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, "unknown parameter 'trt_onnx_bytestream'");
    assert_says(add(CUDA("an_address_of_tomorrow", "4096"), "", &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, "unknown parameter 'an_address_of_tomorrow'");
    assert_says(add(CUDA("user_compute_stream", "1"), "", &gpu), TRITONSERVER_ERROR_INVALID_ARG,
                leads);
    assert_says(add(CUDA("gpu_external_alloc", "1"), "", &gpu), TRITONSERVER_ERROR_INVALID_ARG,
                leads);
}

static void test_parameters_of_cuda(void **state)
{
    (void)state;
    assert_says(add(CUDA("enable_cuda_graph", "1"), "", &gpu), TRITONSERVER_ERROR_UNSUPPORTED,
                "'enable_cuda_graph' is not served");
    assert_says(add("", PARAMETER("cudnn_conv_algo_search", "3"), &gpu),
                TRITONSERVER_ERROR_INVALID_ARG,
                "'cudnn_conv_algo_search' is a number from 0 to 2, not '3'");
    assert_says(add("", PARAMETER("arena_extend_strategy", "-1"), &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, "'arena_extend_strategy' is a number from 0 to 1");
    assert_says(add("", PARAMETER("do_copy_in_default_stream", "x"), &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, "'x'");
    assert_null(add("", PARAMETER("cudnn_conv_algo_search", "3"), NULL));
}

/* Everything is in order, and ONNX Runtime is asked. */
static void test_at_the_door(void **state)
{
    (void)state;
    static const char door[] = "Execution Accelerator 'cuda' does not start";
    assert_says(add("", "", &gpu), TRITONSERVER_ERROR_INVALID_ARG, door);
    assert_says(add(CUDA("gpu_mem_limit", "1"), PARAMETER("cudnn_conv_algo_search", "2"), &gpu),
                TRITONSERVER_ERROR_INVALID_ARG, door);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_those_of_the_other_kind_are_not_looked_at),
        cmocka_unit_test(test_an_unknown_one_is_an_error),
        cmocka_unit_test(test_parameters_of_tensorrt),
        cmocka_unit_test(test_what_leads_out_of_the_model_is_refused),
        cmocka_unit_test(test_parameters_of_cuda),
        cmocka_unit_test(test_at_the_door),
    };
    return cmocka_run_group_tests(tests, open_onnxruntime, NULL);
}
