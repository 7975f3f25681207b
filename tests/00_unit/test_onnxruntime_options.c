/* What the backend `onnxruntime` makes of a model's parameters for sessions and runs. */
#include "common/berr.h"
#include "onnxruntime/options.h"
#include "onnxruntime_opened.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int open_with_two_processors(void **state)
{
    ort.processors = 2;
    return open_onnxruntime(state);
}

#define PARAMETER(key, value) "\"" key "\": {\"string_value\": \"" value "\"}"

/* What becomes of these parameters. ret_run gets the error of runs, which is the caller's. */
static TRITONSERVER_Error *read_parameters(const char *parameters, OrtSessionOptions **ret_options,
                                           TRITONSERVER_Error **ret_run)
{
    char text[512];
    OrtRunOptions *run = NULL;
    snprintf(text, sizeof text, "{\"parameters\": {%s}}", parameters);
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    TRITONSERVER_Error *err = options_new(&ort, yyjson_doc_get_root(doc), NULL, ret_options);
    *ret_run = options_run_new(&ort, yyjson_doc_get_root(doc), &run);
    if (run)
        ort.api->ReleaseRunOptions(run);
    yyjson_doc_free(doc);
    return err;
}

static void assert_leads_out(TRITONSERVER_Error *err, const char *key)
{
    char words[128];
    snprintf(words, sizeof words, "the parameter '%s' leads out of the model's directory", key);
    assert_says(err, TRITONSERVER_ERROR_INVALID_ARG, words);
}

static void test_what_leads_out_of_the_model_is_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "session.collect_node_memory_stats_to_file",
        "session.debug_layout_transformation",
        "session.enable_profiling",
        "session.model_external_initializers_file_folder_path",
        "session.moe.offload.derived_cache_dir",
        "session.moe.offload.source_root",
        "session.node_partition_config_file",
        "session.optimized_model_external_initializers_file_name",
        "session.optimized_model_filepath",
        "session.resource_cuda_partitioning_settings",
        "session.a_directory_of_tomorrow",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char parameter[128];
        OrtSessionOptions *options = NULL;
        TRITONSERVER_Error *run;
        snprintf(parameter, sizeof parameter, "\"%s\": {\"string_value\": \"1\"}", keys[i]);
        assert_leads_out(read_parameters(parameter, &options, &run), keys[i]);
        assert_null(run);
    }
    OrtSessionOptions *options = NULL;
    TRITONSERVER_Error *run;
    assert_null(read_parameters(PARAMETER("memory.a_file", "1"), &options, &run));
    assert_leads_out(run, "memory.a_file");
    ort.api->ReleaseSessionOptions(options);
}

/* The value of a setting of sessions; empty = ONNX Runtime's own. */
static void assert_setting(const char *parameters, const char *key, const char *expected)
{
    char found[16] = "";
    int has = 0;
    size_t size = sizeof found;
    OrtSessionOptions *options = NULL;
    TRITONSERVER_Error *run;
    assert_null(read_parameters(parameters, &options, &run));
    assert_null(run);
    assert_null(ort.api->HasSessionConfigEntry(options, key, &has));
    if (has)
        assert_null(ort.api->GetSessionConfigEntry(options, key, found, &size));
    ort.api->ReleaseSessionOptions(options);
    assert_string_equal(found, expected);
}

static void test_threads_of_its_own_sleep(void **state)
{
    (void)state;
    static const char intra[] = "session.intra_op.allow_spinning";
    static const char inter[] = "session.inter_op.allow_spinning";
    static const char threads[] = PARAMETER("intra_op_thread_count", "3");
    static const char spinning[] = PARAMETER("intra_op_thread_count", "3") ", " PARAMETER(
        "session.intra_op.allow_spinning", "1");
    assert_setting(threads, intra, "0");
    assert_setting(threads, inter, "0");
    assert_setting(spinning, intra, "1");
    assert_setting(spinning, inter, "0");
    assert_setting("", intra, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_leads_out_of_the_model_is_refused),
        cmocka_unit_test(test_threads_of_its_own_sleep),
    };
    return cmocka_run_group_tests(tests, open_with_two_processors, NULL);
}
