/* What every function says to a handle that is none: INVALID_ARG, as the headers promise, and
 * nothing else happens. */
#include "10_inprocess/host.h"
#include "triton/core/tritonbackend.h"
#include "triton/core/tritonrepoagent.h"

#define INVALID(call) HOST_FAILS(call, TRITONSERVER_ERROR_INVALID_ARG, "")

/* -- functions for backends -- */

static void test_no_backend(void **state)
{
    (void)state;
    INVALID(TRITONBACKEND_MemoryManagerAllocate(NULL, NULL, TRITONSERVER_MEMORY_CPU, 1, 1));
    INVALID(TRITONBACKEND_MemoryManagerFree(NULL, NULL, TRITONSERVER_MEMORY_CPU, 1));
    INVALID(TRITONBACKEND_BackendName(NULL, NULL));
    INVALID(TRITONBACKEND_BackendConfig(NULL, NULL));
    INVALID(TRITONBACKEND_BackendExecutionPolicy(NULL, NULL));
    INVALID(TRITONBACKEND_BackendSetExecutionPolicy(NULL, TRITONBACKEND_EXECUTION_BLOCKING));
    INVALID(TRITONBACKEND_BackendArtifacts(NULL, NULL, NULL));
    INVALID(TRITONBACKEND_BackendMemoryManager(NULL, NULL));
    INVALID(TRITONBACKEND_BackendState(NULL, NULL));
    INVALID(TRITONBACKEND_BackendSetState(NULL, NULL));
    INVALID(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        NULL, TRITONSERVER_INSTANCEGROUPKIND_CPU, 1, NULL, 1));
    INVALID(TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(NULL, false));
}

static void test_no_model(void **state)
{
    (void)state;
    INVALID(TRITONBACKEND_ModelName(NULL, NULL));
    INVALID(TRITONBACKEND_ModelVersion(NULL, NULL));
    INVALID(TRITONBACKEND_ModelRepository(NULL, NULL, NULL));
    INVALID(TRITONBACKEND_ModelConfig(NULL, 1, NULL));
    INVALID(TRITONBACKEND_ModelAutoCompleteConfig(NULL, NULL));
    INVALID(TRITONBACKEND_ModelSetConfig(NULL, 1, NULL));
    INVALID(TRITONBACKEND_ModelServer(NULL, NULL));
    INVALID(TRITONBACKEND_ModelBackend(NULL, NULL));
    INVALID(TRITONBACKEND_ModelState(NULL, NULL));
    INVALID(TRITONBACKEND_ModelSetState(NULL, NULL));
    INVALID(TRITONBACKEND_ModelReportMemoryUsage(NULL, NULL, 1));
}

static void test_no_instance(void **state)
{
    (void)state;
    INVALID(TRITONBACKEND_ModelInstanceName(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceKind(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceDeviceId(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceHostPolicy(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceIsPassive(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceProfileCount(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceProfileName(NULL, 1, NULL));
    INVALID(TRITONBACKEND_ModelInstanceSecondaryDeviceCount(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(NULL, 1, NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceModel(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceState(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceSetState(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceReportMemoryUsage(NULL, NULL, 1));
    INVALID(TRITONBACKEND_ModelInstanceReportStatistics(NULL, NULL, false, 1, 1, 1, 1));
    INVALID(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(NULL, 1));
    INVALID(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(NULL, 1));
    INVALID(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(NULL, 1));
    INVALID(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(NULL, NULL));
    INVALID(TRITONBACKEND_ModelInstanceReportResponseStatistics(NULL));
    INVALID(TRITONBACKEND_ModelInstanceReportBatchStatistics(NULL, 1, 1, 1, 1, 1));
}

static void test_no_request(void **state)
{
    (void)state;
    INVALID(TRITONBACKEND_InputProperties(NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    INVALID(
        TRITONBACKEND_InputPropertiesForHostPolicy(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    INVALID(TRITONBACKEND_InputBuffer(NULL, 1, NULL, NULL, NULL, NULL));
    INVALID(TRITONBACKEND_InputBufferForHostPolicy(NULL, NULL, 1, NULL, NULL, NULL, NULL));
    INVALID(TRITONBACKEND_InputBufferAttributes(NULL, 1, NULL, NULL));
    INVALID(TRITONBACKEND_RequestId(NULL, NULL));
    INVALID(TRITONBACKEND_RequestIsCancelled(NULL, NULL));
    INVALID(TRITONBACKEND_RequestCorrelationId(NULL, NULL));
    INVALID(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(NULL, NULL));
    INVALID(TRITONBACKEND_RequestCorrelationIdString(NULL, NULL));
    INVALID(TRITONBACKEND_RequestFlags(NULL, NULL));
    INVALID(TRITONBACKEND_RequestParameterCount(NULL, NULL));
    INVALID(TRITONBACKEND_RequestParameter(NULL, 1, NULL, NULL, NULL));
    INVALID(TRITONBACKEND_RequestInputCount(NULL, NULL));
    INVALID(TRITONBACKEND_RequestInputName(NULL, 1, NULL));
    INVALID(TRITONBACKEND_RequestInput(NULL, NULL, NULL));
    INVALID(TRITONBACKEND_RequestInputByIndex(NULL, 1, NULL));
    INVALID(TRITONBACKEND_RequestOutputCount(NULL, NULL));
    INVALID(TRITONBACKEND_RequestOutputName(NULL, 1, NULL));
    INVALID(TRITONBACKEND_RequestOutputBufferProperties(NULL, NULL, NULL, NULL, NULL));
    INVALID(TRITONBACKEND_RequestRelease(NULL, 1));
    INVALID(TRITONBACKEND_RequestTrace(NULL, NULL));
    INVALID(TRITONBACKEND_StateNew(NULL, NULL, NULL, TRITONSERVER_TYPE_FP32, NULL, 1));
    INVALID(TRITONBACKEND_StateUpdate(NULL));
    INVALID(TRITONBACKEND_StateBuffer(NULL, NULL, 1, NULL, NULL));
    INVALID(TRITONBACKEND_StateBufferAttributes(NULL, NULL));
}

static void test_no_response(void **state)
{
    (void)state;
    INVALID(TRITONBACKEND_OutputBuffer(NULL, NULL, 1, NULL, NULL));
    INVALID(TRITONBACKEND_OutputBufferAttributes(NULL, NULL));
    INVALID(TRITONBACKEND_ResponseFactoryIsCancelled(NULL, NULL));
    INVALID(TRITONBACKEND_ResponseFactoryNew(NULL, NULL));
    INVALID(TRITONBACKEND_ResponseFactoryDelete(NULL));
    INVALID(TRITONBACKEND_ResponseFactorySendFlags(NULL, 1));
    INVALID(TRITONBACKEND_ResponseNew(NULL, NULL));
    INVALID(TRITONBACKEND_ResponseNewFromFactory(NULL, NULL));
    INVALID(TRITONBACKEND_ResponseDelete(NULL));
    INVALID(TRITONBACKEND_ResponseSetStringParameter(NULL, NULL, NULL));
    INVALID(TRITONBACKEND_ResponseSetIntParameter(NULL, NULL, 1));
    INVALID(TRITONBACKEND_ResponseSetBoolParameter(NULL, NULL, false));
    INVALID(TRITONBACKEND_ResponseSetDoubleParameter(NULL, NULL, 1));
    INVALID(TRITONBACKEND_ResponseOutput(NULL, NULL, NULL, TRITONSERVER_TYPE_FP32, NULL, 1));
    INVALID(TRITONBACKEND_ResponseSend(NULL, 1, NULL));
    INVALID(TRITONBACKEND_InferenceResponseOutput(NULL, 1, NULL, NULL, NULL, NULL));
    INVALID(TRITONBACKEND_InferenceResponseOutputByName(NULL, NULL, NULL, NULL, NULL));
}

/* -- functions for applications and agents -- */

static void test_no_server(void **state)
{
    (void)state;
    TRITONSERVER_Server *s;
    TRITONSERVER_Message *m;
    TRITONSERVER_Metrics *metrics;
    TRITONSERVER_InferenceRequest *r;
    const char *text;
    size_t len;
    uint32_t flags;
    bool yes;
    INVALID(TRITONSERVER_ServerNew(&s, NULL));
    HOST_OK(TRITONSERVER_ServerDelete(NULL));
    INVALID(TRITONSERVER_ServerStop(NULL));
    INVALID(TRITONSERVER_ServerSetExitTimeout(NULL, 1));
    INVALID(TRITONSERVER_ServerIsLive(NULL, &yes));
    INVALID(TRITONSERVER_ServerIsReady(NULL, &yes));
    INVALID(TRITONSERVER_ServerModelIsReady(NULL, "m", -1, &yes));
    INVALID(TRITONSERVER_ServerModelBatchProperties(NULL, "m", -1, &flags, NULL));
    INVALID(TRITONSERVER_ServerModelTransactionProperties(NULL, "m", -1, &flags, NULL));
    INVALID(TRITONSERVER_ServerMetadata(NULL, &m));
    INVALID(TRITONSERVER_ServerModelMetadata(NULL, "m", -1, &m));
    INVALID(TRITONSERVER_ServerModelStatistics(NULL, "m", -1, &m));
    INVALID(TRITONSERVER_ServerModelConfig(NULL, "m", -1, 1, &m));
    INVALID(TRITONSERVER_ServerModelIndex(NULL, 0, &m));
    INVALID(TRITONSERVER_ServerMetrics(NULL, &metrics));
    INVALID(TRITONSERVER_MetricsFormatted(NULL, TRITONSERVER_METRIC_PROMETHEUS, &text, &len));
    HOST_OK(TRITONSERVER_MetricsDelete(NULL));
    INVALID(TRITONSERVER_ServerLoadModel(NULL, "m"));
    INVALID(TRITONSERVER_ServerLoadModelWithParameters(NULL, "m", NULL, 0));
    INVALID(TRITONSERVER_ServerUnloadModel(NULL, "m"));
    INVALID(TRITONSERVER_ServerUnloadModelAndDependents(NULL, "m"));
    INVALID(TRITONSERVER_ServerPollModelRepository(NULL));
    INVALID(TRITONSERVER_ServerRegisterModelRepository(NULL, "/", NULL, 0));
    INVALID(TRITONSERVER_ServerRegisterModelRepository(NULL, "/", NULL, 1));
    INVALID(TRITONSERVER_ServerUnregisterModelRepository(NULL, "/"));
    INVALID(TRITONSERVER_InferenceRequestNew(&r, NULL, "m", -1));
    INVALID(TRITONSERVER_ServerInferAsync(NULL, NULL, NULL));
}

static void test_no_infer_request(void **state)
{
    (void)state;
    const char *text;
    uint32_t small;
    uint64_t big;
    bool yes;
    HOST_OK(TRITONSERVER_InferenceRequestDelete(NULL));
    INVALID(TRITONSERVER_InferenceRequestId(NULL, &text));
    INVALID(TRITONSERVER_InferenceRequestSetId(NULL, ""));
    INVALID(TRITONSERVER_InferenceRequestFlags(NULL, &small));
    INVALID(TRITONSERVER_InferenceRequestSetFlags(NULL, 0));
    INVALID(TRITONSERVER_InferenceRequestCorrelationId(NULL, &big));
    INVALID(TRITONSERVER_InferenceRequestCorrelationIdString(NULL, &text));
    INVALID(TRITONSERVER_InferenceRequestSetCorrelationId(NULL, 0));
    INVALID(TRITONSERVER_InferenceRequestSetCorrelationIdString(NULL, ""));
    INVALID(TRITONSERVER_InferenceRequestCancel(NULL));
    INVALID(TRITONSERVER_InferenceRequestIsCancelled(NULL, &yes));
    INVALID(TRITONSERVER_InferenceRequestPriority(NULL, &small));
    INVALID(TRITONSERVER_InferenceRequestPriorityUInt64(NULL, &big));
    INVALID(TRITONSERVER_InferenceRequestSetPriority(NULL, 0));
    INVALID(TRITONSERVER_InferenceRequestSetPriorityUInt64(NULL, 0));
    INVALID(TRITONSERVER_InferenceRequestTimeoutMicroseconds(NULL, &big));
    INVALID(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(NULL, 0));
    INVALID(TRITONSERVER_InferenceRequestAddInput(NULL, "i", TRITONSERVER_TYPE_FP32, NULL, 0));
    INVALID(TRITONSERVER_InferenceRequestAddRawInput(NULL, "i"));
    INVALID(TRITONSERVER_InferenceRequestRemoveInput(NULL, "i"));
    INVALID(TRITONSERVER_InferenceRequestRemoveAllInputs(NULL));
    INVALID(TRITONSERVER_InferenceRequestAppendInputData(NULL, "i", NULL, 0,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    INVALID(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        NULL, "i", NULL, 0, TRITONSERVER_MEMORY_CPU, 0, "p"));
    INVALID(
        TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(NULL, "i", NULL, NULL));
    INVALID(TRITONSERVER_InferenceRequestRemoveAllInputData(NULL, "i"));
    INVALID(TRITONSERVER_InferenceRequestAddRequestedOutput(NULL, "o"));
    INVALID(TRITONSERVER_InferenceRequestRemoveRequestedOutput(NULL, "o"));
    INVALID(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(NULL));
    INVALID(TRITONSERVER_InferenceRequestSetReleaseCallback(NULL, NULL, NULL));
    INVALID(TRITONSERVER_InferenceRequestSetResponseCallback(NULL, NULL, NULL, NULL, NULL));
    INVALID(TRITONSERVER_InferenceRequestSetStringParameter(NULL, "k", "v"));
    INVALID(TRITONSERVER_InferenceRequestSetIntParameter(NULL, "k", 1));
    INVALID(TRITONSERVER_InferenceRequestSetBoolParameter(NULL, "k", true));
    INVALID(TRITONSERVER_InferenceRequestSetDoubleParameter(NULL, "k", 1));
}

static void test_no_infer_response(void **state)
{
    (void)state;
    const char *text;
    int64_t version;
    uint32_t count;
    TRITONSERVER_ParameterType type;
    const void *value;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t rank;
    size_t bytes;
    TRITONSERVER_MemoryType memory;
    void *userp;
    TRITONSERVER_ResponseAllocator *a;
    HOST_OK(TRITONSERVER_InferenceResponseDelete(NULL));
    INVALID(TRITONSERVER_InferenceResponseError(NULL));
    INVALID(TRITONSERVER_InferenceResponseModel(NULL, &text, &version));
    INVALID(TRITONSERVER_InferenceResponseId(NULL, &text));
    INVALID(TRITONSERVER_InferenceResponseParameterCount(NULL, &count));
    INVALID(TRITONSERVER_InferenceResponseParameter(NULL, 0, &text, &type, &value));
    INVALID(TRITONSERVER_InferenceResponseOutputCount(NULL, &count));
    INVALID(TRITONSERVER_InferenceResponseOutput(NULL, 0, &text, &datatype, &shape, &rank, &value,
                                                 &bytes, &memory, &version, &userp));
    INVALID(TRITONSERVER_InferenceResponseOutputClassificationLabel(NULL, 0, 0, &text));
    INVALID(TRITONSERVER_ResponseAllocatorNew(&a, NULL, NULL, NULL));
    INVALID(TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(NULL, NULL));
    INVALID(TRITONSERVER_ResponseAllocatorSetQueryFunction(NULL, NULL));
    HOST_OK(TRITONSERVER_ResponseAllocatorDelete(NULL));
}

static void test_no_agent_model(void **state)
{
    (void)state;
    TRITONREPOAGENT_ArtifactType type;
    const char *text;
    uint32_t count;
    void *pointer;
    TRITONSERVER_Message *m;
    INVALID(TRITONREPOAGENT_ModelRepositoryLocation(NULL, NULL, &type, &text));
    INVALID(TRITONREPOAGENT_ModelRepositoryLocationAcquire(
        NULL, NULL, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &text));
    INVALID(TRITONREPOAGENT_ModelRepositoryLocationRelease(NULL, NULL, "/"));
    INVALID(TRITONREPOAGENT_ModelRepositoryUpdate(NULL, NULL, TRITONREPOAGENT_ARTIFACT_FILESYSTEM,
                                                  "/"));
    INVALID(TRITONREPOAGENT_ModelParameterCount(NULL, NULL, &count));
    INVALID(TRITONREPOAGENT_ModelParameter(NULL, NULL, 0, &text, &text));
    INVALID(TRITONREPOAGENT_ModelConfig(NULL, NULL, 1, &m));
    INVALID(TRITONREPOAGENT_ModelState(NULL, &pointer));
    INVALID(TRITONREPOAGENT_ModelSetState(NULL, NULL));
    INVALID(TRITONREPOAGENT_State(NULL, &pointer));
    INVALID(TRITONREPOAGENT_SetState(NULL, NULL));
}

static void test_no_options(void **state)
{
    (void)state;
    INVALID(TRITONSERVER_ServerOptionsAddRateLimiterResource(NULL, "r", 1, 0));
    INVALID(TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetCacheDirectory(NULL, "/"));
    INVALID(TRITONSERVER_ServerOptionsSetCpuMetrics(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetEnablePeerAccess(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetExitOnError(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetGpuMetrics(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetHostPolicy(NULL, "p", "cpu-cores", "0"));
    INVALID(TRITONSERVER_ServerOptionsSetLogError(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetLogFile(NULL, "f"));
    INVALID(TRITONSERVER_ServerOptionsSetLogVerbose(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetLogWarn(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetMetrics(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetMetricsConfig(NULL, "", "k", "v"));
    INVALID(TRITONSERVER_ServerOptionsSetMetricsInterval(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetModelConfigName(NULL, "c"));
    INVALID(TRITONSERVER_ServerOptionsSetModelLoadRetryCount(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetModelLoadThreadCount(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetModelNamespacing(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(NULL, "/"));
    INVALID(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(NULL, 1));
    INVALID(TRITONSERVER_ServerOptionsSetStartupModel(NULL, "m"));
    INVALID(TRITONSERVER_ServerOptionsSetStrictModelConfig(NULL, true));
    INVALID(TRITONSERVER_ServerOptionsSetStrictReadiness(NULL, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_backend),       cmocka_unit_test(test_no_model),
        cmocka_unit_test(test_no_instance),      cmocka_unit_test(test_no_request),
        cmocka_unit_test(test_no_response),      cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_no_infer_request), cmocka_unit_test(test_no_infer_response),
        cmocka_unit_test(test_no_agent_model),   cmocka_unit_test(test_no_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
