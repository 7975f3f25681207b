/* What needs no server: errors, names, parameters, buffer attributes, messages, metrics,
 * options, traces, cache entries. */
#include "10_inprocess/host.h"
#include "triton/core/tritonbackend.h"
#include "triton/core/tritoncache.h"
#include "triton/core/tritonrepoagent.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INVALID(call) HOST_FAILS(call, TRITONSERVER_ERROR_INVALID_ARG, "")

static void test_versions_and_names(void **state)
{
    (void)state;
    uint32_t major = 9;
    uint32_t minor = 9;
    HOST_OK(TRITONSERVER_ApiVersion(&major, &minor));
    assert_int_equal(major, TRITONSERVER_API_VERSION_MAJOR);
    assert_int_equal(minor, TRITONSERVER_API_VERSION_MINOR);
    HOST_OK(TRITONREPOAGENT_ApiVersion(&major, &minor));
    assert_int_equal(minor, TRITONREPOAGENT_API_VERSION_MINOR);
    assert_string_equal(TRITONSERVER_DataTypeString(TRITONSERVER_TYPE_BF16), "BF16");
    assert_int_equal(TRITONSERVER_StringToDataType("FP16"), TRITONSERVER_TYPE_FP16);
    assert_int_equal(TRITONSERVER_StringToDataType("FP17"), TRITONSERVER_TYPE_INVALID);
    assert_int_equal(TRITONSERVER_DataTypeByteSize(TRITONSERVER_TYPE_INT64), 8);
    assert_string_equal(TRITONSERVER_MemoryTypeString(TRITONSERVER_MEMORY_CPU_PINNED),
                        "CPU_PINNED");
    assert_string_equal(TRITONSERVER_MemoryTypeString((TRITONSERVER_MemoryType)9), "<invalid>");
    assert_string_equal(TRITONSERVER_InstanceGroupKindString(TRITONSERVER_INSTANCEGROUPKIND_MODEL),
                        "MODEL");
    assert_string_equal(TRITONSERVER_ParameterTypeString(TRITONSERVER_PARAMETER_STRING), "STRING");
    assert_string_equal(TRITONSERVER_ParameterTypeString(TRITONSERVER_PARAMETER_INT), "INT");
    assert_string_equal(TRITONSERVER_ParameterTypeString(TRITONSERVER_PARAMETER_BOOL), "BOOL");
    assert_string_equal(TRITONSERVER_ParameterTypeString(TRITONSERVER_PARAMETER_DOUBLE), "DOUBLE");
    assert_string_equal(TRITONSERVER_ParameterTypeString(TRITONSERVER_PARAMETER_BYTES), "BYTES");
    assert_string_equal(TRITONSERVER_ParameterTypeString((TRITONSERVER_ParameterType)9),
                        "<invalid>");
    assert_string_equal(TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS),
                        "TIMESTAMPS");
    assert_string_equal(
        TRITONSERVER_InferenceTraceLevelString((TRITONSERVER_InferenceTraceLevel)64), "<unknown>");
    assert_string_equal(
        TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_TRACE_COMPUTE_OUTPUT_START),
        "COMPUTE_OUTPUT_START");
    assert_string_equal(
        TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_TRACE_CUSTOM_ACTIVITY),
        "CUSTOM_ACTIVITY");
    assert_string_equal(
        TRITONSERVER_InferenceTraceActivityString((TRITONSERVER_InferenceTraceActivity)99),
        "<unknown>");
}

static void test_errors(void **state)
{
    (void)state;
    TRITONSERVER_Error *e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_ALREADY_EXISTS, "twice");
    assert_int_equal(TRITONSERVER_ErrorCode(e), TRITONSERVER_ERROR_ALREADY_EXISTS);
    assert_string_equal(TRITONSERVER_ErrorCodeString(e), "Already exists");
    assert_string_equal(TRITONSERVER_ErrorMessage(e), "twice");
    TRITONSERVER_ErrorDelete(e);
    TRITONSERVER_ErrorDelete(NULL);
}

static void test_log(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o;
    HOST_OK(TRITONSERVER_ServerOptionsNew(&o));
    char path[] = "/tmp/nereid-log-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    HOST_OK(TRITONSERVER_ServerOptionsSetLogFile(o, path));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogWarn(o, false));
    assert_false(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_WARN));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogWarn(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogFormat(o, TRITONSERVER_LOG_ISO8601));
    HOST_OK(TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, "host.c", 7, "a line of the host"));
    INVALID(TRITONSERVER_LogMessage((TRITONSERVER_LogLevel)9, "host.c", 7, "no such level"));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogVerbose(o, 1));
    assert_true(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogVerbose(o, 0));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogFormat(o, TRITONSERVER_LOG_DEFAULT));
    INVALID(TRITONSERVER_ServerOptionsSetLogFormat(o, (TRITONSERVER_LogFormat)9));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogFile(o, ""));
    HOST_OK(TRITONSERVER_ServerOptionsDelete(o));
    char text[256] = {0};
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    assert_non_null(strstr(text, "Z W "));
    assert_non_null(strstr(text, "host.c:7] \"a line of the host\""));
    close(fd);
    unlink(path);
}

static void test_parameters(void **state)
{
    (void)state;
    int64_t number = 3;
    TRITONSERVER_Parameter *p = TRITONSERVER_ParameterNew("n", TRITONSERVER_PARAMETER_INT, &number);
    assert_non_null(p);
    TRITONSERVER_ParameterDelete(p);
    TRITONSERVER_ParameterDelete(NULL);
    assert_null(TRITONSERVER_ParameterNew("n", TRITONSERVER_PARAMETER_BYTES, &number));
    assert_null(TRITONSERVER_ParameterNew(NULL, TRITONSERVER_PARAMETER_INT, &number));
    p = TRITONSERVER_ParameterBytesNew("file:1/model", "bytes", 5);
    assert_non_null(p);
    TRITONSERVER_ParameterDelete(p);
    assert_null(TRITONSERVER_ParameterBytesNew("b", NULL, 5));
}

static void test_buffer_attributes(void **state)
{
    (void)state;
    TRITONSERVER_BufferAttributes *b;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    int64_t id = 9;
    size_t bytes = 9;
    void *handle = &bytes;
    HOST_OK(TRITONSERVER_BufferAttributesNew(&b));
    HOST_OK(TRITONSERVER_BufferAttributesMemoryType(b, &type));
    HOST_OK(TRITONSERVER_BufferAttributesMemoryTypeId(b, &id));
    HOST_OK(TRITONSERVER_BufferAttributesByteSize(b, &bytes));
    HOST_OK(TRITONSERVER_BufferAttributesCudaIpcHandle(b, &handle));
    assert_true(type == TRITONSERVER_MEMORY_CPU && id == 0 && bytes == 0 && !handle);
    HOST_OK(TRITONSERVER_BufferAttributesSetMemoryType(b, TRITONSERVER_MEMORY_GPU));
    HOST_OK(TRITONSERVER_BufferAttributesSetMemoryTypeId(b, 2));
    HOST_OK(TRITONSERVER_BufferAttributesSetByteSize(b, 64));
    HOST_OK(TRITONSERVER_BufferAttributesSetCudaIpcHandle(b, &type));
    HOST_OK(TRITONSERVER_BufferAttributesMemoryType(b, &type));
    HOST_OK(TRITONSERVER_BufferAttributesMemoryTypeId(b, &id));
    HOST_OK(TRITONSERVER_BufferAttributesByteSize(b, &bytes));
    HOST_OK(TRITONSERVER_BufferAttributesCudaIpcHandle(b, &handle));
    assert_true(type == TRITONSERVER_MEMORY_GPU && id == 2 && bytes == 64 && handle == &type);
    HOST_OK(TRITONSERVER_BufferAttributesDelete(b));
    HOST_OK(TRITONSERVER_BufferAttributesDelete(NULL));
    INVALID(TRITONSERVER_BufferAttributesMemoryType(NULL, &type));
    INVALID(TRITONSERVER_BufferAttributesMemoryTypeId(NULL, &id));
    INVALID(TRITONSERVER_BufferAttributesByteSize(NULL, &bytes));
    INVALID(TRITONSERVER_BufferAttributesCudaIpcHandle(NULL, &handle));
    INVALID(TRITONSERVER_BufferAttributesSetMemoryType(NULL, type));
    INVALID(TRITONSERVER_BufferAttributesSetMemoryTypeId(NULL, 0));
    INVALID(TRITONSERVER_BufferAttributesSetByteSize(NULL, 0));
    INVALID(TRITONSERVER_BufferAttributesSetCudaIpcHandle(NULL, NULL));
}

static void test_messages(void **state)
{
    (void)state;
    TRITONSERVER_Message *m;
    HOST_OK(TRITONSERVER_MessageNewFromSerializedJson(&m, "{\"a\":[1]}", 9));
    char *text = host_text(m);
    assert_string_equal(text, "{\"a\":[1]}");
    free(text);
    HOST_FAILS(TRITONSERVER_MessageNewFromSerializedJson(&m, "{\"a\":", 5),
               TRITONSERVER_ERROR_INTERNAL, "failed to parse the request JSON buffer");
    INVALID(TRITONSERVER_MessageNewFromSerializedJson(&m, NULL, 5));
    const char *base;
    size_t len;
    INVALID(TRITONSERVER_MessageSerializeToJson(NULL, &base, &len));
    HOST_OK(TRITONSERVER_MessageDelete(NULL));
}

/* -- metrics -- */

static void test_counters_and_gauges(void **state)
{
    (void)state;
    TRITONSERVER_MetricFamily *counters;
    TRITONSERVER_MetricFamily *gauges;
    TRITONSERVER_MetricFamily *joined;
    TRITONSERVER_MetricKind kind;
    TRITONSERVER_Metric *a;
    TRITONSERVER_Metric *b;
    double value = 0;
    HOST_OK(TRITONSERVER_MetricFamilyNew(&counters, TRITONSERVER_METRIC_KIND_COUNTER, "host_total",
                                         "what the host counts"));
    HOST_OK(TRITONSERVER_MetricFamilyNew(&joined, TRITONSERVER_METRIC_KIND_COUNTER, "host_total",
                                         "other words"));
    HOST_OK(TRITONSERVER_GetMetricFamilyKind(counters, &kind));
    assert_int_equal(kind, TRITONSERVER_METRIC_KIND_COUNTER);
    HOST_FAILS(
        TRITONSERVER_MetricFamilyNew(&gauges, TRITONSERVER_METRIC_KIND_GAUGE, "host_total", ""),
        TRITONSERVER_ERROR_INVALID_ARG, "another kind");
    HOST_FAILS(TRITONSERVER_MetricFamilyNew(&gauges, TRITONSERVER_METRIC_KIND_GAUGE,
                                            "nv_inference_count", ""),
               TRITONSERVER_ERROR_INVALID_ARG, "the server's own family");
    INVALID(TRITONSERVER_MetricFamilyNew(&gauges, TRITONSERVER_METRIC_KIND_GAUGE, "no name", ""));
    INVALID(TRITONSERVER_MetricFamilyNew(&gauges, (TRITONSERVER_MetricKind)9, "host_x", ""));
    INVALID(TRITONSERVER_MetricFamilyNew(&gauges, TRITONSERVER_METRIC_KIND_GAUGE, NULL, ""));

    const TRITONSERVER_Parameter *labels[2] = {
        TRITONSERVER_ParameterNew("who", TRITONSERVER_PARAMETER_STRING, "host"),
        TRITONSERVER_ParameterNew("at", TRITONSERVER_PARAMETER_STRING, "here"),
    };
    const TRITONSERVER_Parameter *turned[2] = {labels[1], labels[0]};
    HOST_OK(TRITONSERVER_MetricNew(&a, counters, labels, 2));
    HOST_OK(TRITONSERVER_MetricNew(&b, joined, turned, 2));
    HOST_OK(TRITONSERVER_MetricIncrement(a, 2.5));
    HOST_OK(TRITONSERVER_MetricIncrement(b, 1));
    HOST_OK(TRITONSERVER_MetricValue(b, &value));
    assert_true(value == 3.5);
    INVALID(TRITONSERVER_MetricIncrement(a, -1));
    HOST_FAILS(TRITONSERVER_MetricSet(a, 1), TRITONSERVER_ERROR_UNSUPPORTED, "cannot be set");
    HOST_FAILS(TRITONSERVER_MetricObserve(a, 1), TRITONSERVER_ERROR_UNSUPPORTED, "observed");
    HOST_OK(TRITONSERVER_GetMetricKind(a, &kind));
    assert_int_equal(kind, TRITONSERVER_METRIC_KIND_COUNTER);
    HOST_FAILS(TRITONSERVER_MetricFamilyDelete(counters), TRITONSERVER_ERROR_INTERNAL,
               "delete them before");
    HOST_OK(TRITONSERVER_MetricDelete(a));
    HOST_OK(TRITONSERVER_MetricFamilyDelete(counters));
    HOST_OK(TRITONSERVER_MetricDelete(b));
    HOST_OK(TRITONSERVER_MetricFamilyDelete(joined));

    int64_t seven = 7;
    const TRITONSERVER_Parameter *number =
        TRITONSERVER_ParameterNew("n", TRITONSERVER_PARAMETER_INT, &seven);
    HOST_OK(
        TRITONSERVER_MetricFamilyNew(&gauges, TRITONSERVER_METRIC_KIND_GAUGE, "host_level", ""));
    HOST_FAILS(TRITONSERVER_MetricNew(&a, gauges, &number, 1), TRITONSERVER_ERROR_INVALID_ARG,
               "TRITONSERVER_PARAMETER_STRING");
    HOST_OK(TRITONSERVER_MetricNew(&a, gauges, NULL, 0));
    HOST_OK(TRITONSERVER_MetricSet(a, -4));
    HOST_OK(TRITONSERVER_MetricIncrement(a, -0.5));
    HOST_OK(TRITONSERVER_MetricValue(a, &value));
    assert_true(value == -4.5);
    HOST_OK(TRITONSERVER_MetricDelete(a));
    HOST_OK(TRITONSERVER_MetricFamilyDelete(gauges));
    TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)(uintptr_t)number);
    for (int i = 0; i < 2; i++)
        TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)(uintptr_t)labels[i]);
}

static void test_histograms(void **state)
{
    (void)state;
    TRITONSERVER_MetricFamily *f;
    TRITONSERVER_MetricArgs *args;
    TRITONSERVER_Metric *m;
    double value;
    HOST_OK(
        TRITONSERVER_MetricFamilyNew(&f, TRITONSERVER_METRIC_KIND_HISTOGRAM, "host_seconds", "h"));
    HOST_OK(TRITONSERVER_MetricArgsNew(&args));
    HOST_FAILS(TRITONSERVER_MetricNewWithArgs(&m, f, NULL, 0, args), TRITONSERVER_ERROR_INVALID_ARG,
               "were not set");
    HOST_FAILS(TRITONSERVER_MetricNew(&m, f, NULL, 0), TRITONSERVER_ERROR_INVALID_ARG,
               "needs bucket boundaries");
    HOST_OK(TRITONSERVER_MetricArgsSetHistogram(args, (double[]){2, 1}, 2));
    HOST_FAILS(TRITONSERVER_MetricNewWithArgs(&m, f, NULL, 0, args), TRITONSERVER_ERROR_INVALID_ARG,
               "have to rise");
    HOST_OK(TRITONSERVER_MetricArgsSetHistogram(args, (double[]){0.1, 1}, 2));
    HOST_OK(TRITONSERVER_MetricNewWithArgs(&m, f, NULL, 0, args));
    HOST_OK(TRITONSERVER_MetricArgsDelete(args));
    HOST_OK(TRITONSERVER_MetricObserve(m, 0.1));
    HOST_OK(TRITONSERVER_MetricObserve(m, 0.5));
    HOST_OK(TRITONSERVER_MetricObserve(m, 7));
    HOST_FAILS(TRITONSERVER_MetricValue(m, &value), TRITONSERVER_ERROR_UNSUPPORTED, "one value");
    HOST_FAILS(TRITONSERVER_MetricIncrement(m, 1), TRITONSERVER_ERROR_UNSUPPORTED, "incremented");
    HOST_OK(TRITONSERVER_MetricDelete(m));
    HOST_OK(TRITONSERVER_MetricFamilyDelete(f));
}

static void test_invalid_metrics(void **state)
{
    (void)state;
    TRITONSERVER_MetricKind kind;
    TRITONSERVER_Metric *m;
    double value;
    HOST_OK(TRITONSERVER_MetricFamilyDelete(NULL));
    HOST_OK(TRITONSERVER_MetricDelete(NULL));
    HOST_OK(TRITONSERVER_MetricArgsDelete(NULL));
    INVALID(TRITONSERVER_GetMetricFamilyKind(NULL, &kind));
    INVALID(TRITONSERVER_GetMetricKind(NULL, &kind));
    INVALID(TRITONSERVER_MetricNew(&m, NULL, NULL, 0));
    INVALID(TRITONSERVER_MetricNewWithArgs(&m, NULL, NULL, 0, NULL));
    INVALID(TRITONSERVER_MetricArgsSetHistogram(NULL, &value, 1));
    INVALID(TRITONSERVER_MetricValue(NULL, &value));
    INVALID(TRITONSERVER_MetricIncrement(NULL, 1));
    INVALID(TRITONSERVER_MetricSet(NULL, 1));
    INVALID(TRITONSERVER_MetricObserve(NULL, 1));
}

/* -- options -- */

static void test_options_as_they_are_by_default(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o;
    HOST_OK(TRITONSERVER_ServerOptionsNew(&o));
    HOST_OK(TRITONSERVER_ServerOptionsSetServerId(o, "mine"));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_NONE));
    HOST_OK(TRITONSERVER_ServerOptionsSetStrictModelConfig(o, false));
    HOST_OK(TRITONSERVER_ServerOptionsSetRateLimiterMode(o, TRITONSERVER_RATE_LIMIT_OFF));
    HOST_OK(TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(o, 1 << 28));
    HOST_OK(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(o, 0, 1 << 26));
    HOST_OK(TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(o, 0, 1 << 30));
    HOST_OK(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(o, 0));
    HOST_OK(TRITONSERVER_ServerOptionsSetCacheDirectory(o, "/opt/tritonserver/caches"));
    HOST_OK(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(o, 6.0));
    HOST_OK(TRITONSERVER_ServerOptionsSetExitOnError(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetStrictReadiness(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetExitTimeout(o, 30));
    HOST_OK(TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(o, 0));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelLoadThreadCount(o, 4));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelLoadRetryCount(o, 0));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelNamespacing(o, false));
    HOST_OK(TRITONSERVER_ServerOptionsSetEnablePeerAccess(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogError(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetMetrics(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetGpuMetrics(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetCpuMetrics(o, true));
    HOST_OK(TRITONSERVER_ServerOptionsSetMetricsInterval(o, 2000));
    HOST_OK(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(o, "/opt/tritonserver/repoagents"));
    HOST_OK(TRITONSERVER_ServerOptionsSetBackendConfig(o, "", "default-max-batch-size", "8"));
    HOST_OK(TRITONSERVER_ServerOptionsSetMetricsConfig(o, "", "counter_latencies", "true"));
    HOST_OK(TRITONSERVER_ServerOptionsDelete(o));
    HOST_OK(TRITONSERVER_ServerOptionsDelete(NULL));
}

/* What an option asks for is done, or refused by name: never forgotten. */
static void expect_known(TRITONSERVER_Error *e, const char *option)
{
    if (e) {
        assert_int_equal(TRITONSERVER_ErrorCode(e), TRITONSERVER_ERROR_UNSUPPORTED);
        assert_non_null(strstr(TRITONSERVER_ErrorMessage(e), option));
    }
    TRITONSERVER_ErrorDelete(e);
}

static void test_options_that_may_be_refused(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o;
    HOST_OK(TRITONSERVER_ServerOptionsNew(&o));
    expect_known(
        TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_EXPLICIT),
        "model-control-mode");
    expect_known(TRITONSERVER_ServerOptionsSetStartupModel(o, "m"), "load-model");
    expect_known(TRITONSERVER_ServerOptionsSetModelConfigName(o, "small"), "model-config-name");
    HOST_OK(TRITONSERVER_ServerOptionsSetRateLimiterMode(o, TRITONSERVER_RATE_LIMIT_EXEC_COUNT));
    HOST_OK(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "r", 2, -1));
    HOST_OK(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "r", 1, 3));
    expect_known(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local", "{\"size\":\"1048576\"}"),
                 "cache-config");
    HOST_OK(TRITONSERVER_ServerOptionsSetHostPolicy(o, "p", "numa-node", "0"));
    TRITONSERVER_Error *unknown = TRITONSERVER_ServerOptionsSetHostPolicy(o, "p", "memory", "0");
    assert_int_equal(TRITONSERVER_ErrorCode(unknown), TRITONSERVER_ERROR_UNSUPPORTED);
    assert_string_equal(TRITONSERVER_ErrorMessage(unknown),
                        "Unsupported host policy setting 'memory' is specified, supported settings "
                        "are 'numa-node', 'cpu-cores'");
    TRITONSERVER_ErrorDelete(unknown);
    expect_known(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
                     o, TRITONSERVER_INSTANCEGROUPKIND_GPU, 0, 0.5),
                 "model-load-gpu-limit");
    INVALID(TRITONSERVER_ServerOptionsSetModelControlMode(o, (TRITONSERVER_ModelControlMode)9));
    INVALID(TRITONSERVER_ServerOptionsSetRateLimiterMode(o, (TRITONSERVER_RateLimitMode)9));
    INVALID(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local", "no JSON"));
    INVALID(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o, TRITONSERVER_INSTANCEGROUPKIND_CPU,
                                                              0, 0.5));
    INVALID(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, ""));
    HOST_OK(TRITONSERVER_ServerOptionsDelete(o));
    INVALID(TRITONSERVER_ServerOptionsSetServerId(NULL, "x"));
    INVALID(TRITONSERVER_ServerOptionsSetBackendDirectory(NULL, "x"));
    INVALID(TRITONSERVER_ServerOptionsSetLogInfo(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetExitTimeout(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetBackendConfig(NULL, "b", "k", "v"));
    INVALID(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(NULL, 0, 0));
    INVALID(TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(NULL, 0, 0));
    INVALID(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(NULL, 6.0));
}

/* -- traces -- */

static void trace_activity(TRITONSERVER_InferenceTrace *trace,
                           TRITONSERVER_InferenceTraceActivity activity, uint64_t when, void *userp)
{
    (void)trace;
    assert_int_equal(activity, TRITONSERVER_TRACE_CUSTOM_ACTIVITY);
    *(uint64_t *)userp += when;
}

static void trace_released(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    (void)trace;
    (void)userp;
}

static void test_traces(void **state)
{
    (void)state;
    uint64_t sum = 0;
    TRITONSERVER_InferenceTrace *t;
    TRITONSERVER_InferenceTrace *child;
    uint64_t id = 0;
    uint64_t parent = 0;
    int64_t version;
    const char *text;
    INVALID(TRITONSERVER_InferenceTraceNew(&t, TRITONSERVER_TRACE_LEVEL_MIN, 0, trace_activity,
                                           NULL, &sum));
    HOST_OK(TRITONSERVER_InferenceTraceNew(&t, TRITONSERVER_TRACE_LEVEL_MIN, 77, trace_activity,
                                           trace_released, &sum));
    HOST_OK(TRITONSERVER_InferenceTraceParentId(t, &parent));
    assert_int_equal(parent, 77);
    HOST_OK(TRITONSERVER_InferenceTraceId(t, &id));
    HOST_OK(TRITONSERVER_InferenceTraceSpawnChildTrace(t, &child));
    HOST_OK(TRITONSERVER_InferenceTraceParentId(child, &parent));
    assert_int_equal(parent, id);
    HOST_OK(TRITONSERVER_InferenceTraceModelName(t, &text));
    assert_string_equal(text, "");
    HOST_OK(TRITONSERVER_InferenceTraceModelVersion(t, &version));
    HOST_OK(TRITONSERVER_InferenceTraceRequestId(t, &text));
    HOST_OK(TRITONSERVER_InferenceTraceSetContext(t, "{\"a\":\"b\"}"));
    HOST_OK(TRITONSERVER_InferenceTraceReportActivity(t, 12, "my step"));
    HOST_OK(TRITONSERVER_InferenceTraceContext(t, &text));
    assert_string_equal(text, "{\"a\":\"b\",\"12\":\"my step\"}");
    assert_int_equal(sum, 12);
    HOST_OK(TRITONSERVER_InferenceTraceDelete(child));
    HOST_OK(TRITONSERVER_InferenceTraceDelete(t));
    HOST_OK(TRITONSERVER_InferenceTraceDelete(NULL));
    INVALID(TRITONSERVER_InferenceTraceId(NULL, &id));
    INVALID(TRITONSERVER_InferenceTraceParentId(NULL, &id));
    INVALID(TRITONSERVER_InferenceTraceModelName(NULL, &text));
    INVALID(TRITONSERVER_InferenceTraceModelVersion(NULL, &version));
    INVALID(TRITONSERVER_InferenceTraceRequestId(NULL, &text));
    INVALID(TRITONSERVER_InferenceTraceSpawnChildTrace(NULL, &child));
    INVALID(TRITONSERVER_InferenceTraceSetContext(NULL, ""));
    INVALID(TRITONSERVER_InferenceTraceContext(NULL, &text));
    INVALID(TRITONSERVER_InferenceTraceReportActivity(NULL, 1, "x"));
    INVALID(TRITONSERVER_InferenceTraceTensorNew(&t, TRITONSERVER_TRACE_LEVEL_TENSORS, 0, NULL,
                                                 NULL, NULL, NULL));
}

/* -- caches -- */

static void test_cache_entries(void **state)
{
    (void)state;
    TRITONCACHE_CacheEntry *entry;
    TRITONSERVER_BufferAttributes *a;
    TRITONSERVER_BufferAttributes *b;
    char bytes[2];
    void *base;
    size_t count = 9;
    uint32_t major = 9;
    uint32_t minor = 9;
    HOST_OK(TRITONCACHE_ApiVersion(&major, &minor));
    assert_int_equal(major, TRITONCACHE_API_VERSION_MAJOR);
    assert_int_equal(minor, TRITONCACHE_API_VERSION_MINOR);
    HOST_OK(TRITONCACHE_CacheEntryNew(&entry));
    HOST_OK(TRITONSERVER_BufferAttributesNew(&a));
    HOST_OK(TRITONSERVER_BufferAttributesNew(&b));
    HOST_OK(TRITONSERVER_BufferAttributesSetByteSize(a, 2));
    HOST_OK(TRITONCACHE_CacheEntryBufferCount(entry, &count));
    assert_int_equal(count, 0);
    HOST_OK(TRITONCACHE_CacheEntryAddBuffer(entry, bytes, a));
    INVALID(TRITONCACHE_CacheEntryAddBuffer(entry, NULL, a));
    HOST_OK(TRITONCACHE_CacheEntryBufferCount(entry, &count));
    assert_int_equal(count, 1);
    HOST_OK(TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, b));
    assert_ptr_equal(base, bytes);
    HOST_OK(TRITONSERVER_BufferAttributesByteSize(b, &count));
    assert_int_equal(count, 2);
    HOST_OK(TRITONCACHE_CacheEntrySetBuffer(entry, 0, bytes + 1, NULL));
    HOST_OK(TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, b));
    assert_ptr_equal(base, bytes + 1);
    INVALID(TRITONCACHE_CacheEntryGetBuffer(entry, 1, &base, b));
    INVALID(TRITONCACHE_CacheEntrySetBuffer(entry, 1, bytes, a));
    HOST_FAILS(TRITONCACHE_Copy(NULL, entry), TRITONSERVER_ERROR_INVALID_ARG,
               "TRITONCACHE_Allocator");
    HOST_OK(TRITONCACHE_CacheEntryDelete(entry));
    HOST_OK(TRITONCACHE_CacheEntryDelete(NULL));
    INVALID(TRITONCACHE_CacheEntryBufferCount(NULL, &count));
    INVALID(TRITONCACHE_CacheEntryAddBuffer(NULL, bytes, a));
    INVALID(TRITONCACHE_CacheEntryGetBuffer(NULL, 0, &base, a));
    INVALID(TRITONCACHE_CacheEntrySetBuffer(NULL, 0, bytes, NULL));
    HOST_OK(TRITONSERVER_BufferAttributesDelete(a));
    HOST_OK(TRITONSERVER_BufferAttributesDelete(b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_and_names),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_buffer_attributes),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_counters_and_gauges),
        cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_invalid_metrics),
        cmocka_unit_test(test_options_as_they_are_by_default),
        cmocka_unit_test(test_options_that_may_be_refused),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_cache_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
