/* A backend that asks for as many bytes of output as its INT32 input IN says and writes the
 * first half of them, with ones. */
#include "triton/core/tritonbackend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(TRITONSERVER_Error *e)
{
    if (!e)
        return;
    fprintf(stderr, "miser backend: %s\n", TRITONSERVER_ErrorMessage(e));
    abort();
}

static int32_t number_of(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *input;
    const void *data = NULL;
    uint64_t size = 0;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    int32_t n = 0;
    must(TRITONBACKEND_RequestInput(request, "IN", &input));
    must(TRITONBACKEND_InputBuffer(input, 0, &data, &size, &memory, &device));
    memcpy(&n, data, sizeof(n));
    return n;
}

static void answer(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Response *response;
    TRITONBACKEND_Output *output;
    int64_t size = number_of(request);
    void *buffer = NULL;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    must(TRITONBACKEND_ResponseNew(&response, request));
    must(TRITONBACKEND_ResponseOutput(response, &output, "OUT", TRITONSERVER_TYPE_UINT8, &size, 1));
    must(TRITONBACKEND_OutputBuffer(output, &buffer, (uint64_t)size, &memory, &device));
    memset(buffer, 1, (size_t)size / 2);
    must(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    must(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t request_count)
{
    (void)instance;
    for (uint32_t i = 0; i < request_count; i++)
        answer(requests[i]);
    return NULL;
}
