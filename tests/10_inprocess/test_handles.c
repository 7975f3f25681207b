/* What the functions for backends say to a handle that is none: INVALID_ARG, as the headers promise, and nothing else happens. */
#include "10_inprocess/host.h"
#include "triton/core/tritonbackend.h"

#define INVALID(call) HOST_FAILS(call, TRITONSERVER_ERROR_INVALID_ARG, "")

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_backend),  cmocka_unit_test(test_no_model),
        cmocka_unit_test(test_no_instance), cmocka_unit_test(test_no_request),
        cmocka_unit_test(test_no_response),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
