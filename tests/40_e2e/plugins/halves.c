/* halves: a backend that sends its response without the final flag, and the flag on a thread of
 * its own, which is through before Execute returns. */
#include "triton/core/tritonbackend.h"

#include <pthread.h>
#include <stdlib.h>

static void must(TRITONSERVER_Error *e)
{
    if (e)
        abort();
}

static void *end(void *request)
{
    TRITONBACKEND_ResponseFactory *factory;
    must(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    must(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    must(TRITONBACKEND_ResponseFactoryDelete(factory));
    must(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    return NULL;
}

static void begin(TRITONBACKEND_Request *request)
{
    const int64_t shape[1] = {1};
    TRITONBACKEND_Response *response;
    TRITONBACKEND_Output *output;
    void *buffer;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    must(TRITONBACKEND_ResponseNew(&response, request));
    must(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TRITONSERVER_TYPE_INT32, shape,
                                      1));
    must(TRITONBACKEND_OutputBuffer(output, &buffer, 4, &memory, &device));
    *(int32_t *)buffer = 7;
    must(TRITONBACKEND_ResponseSend(response, 0, NULL));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    (void)instance;
    for (uint32_t i = 0; i < count; i++) {
        pthread_t thread;
        begin(requests[i]);
        if (pthread_create(&thread, NULL, end, requests[i]) != 0)
            abort();
        pthread_join(thread, NULL);
    }
    return NULL;
}
