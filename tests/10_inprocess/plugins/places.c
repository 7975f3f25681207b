/* A backend whose models have an FP32 input INPUT0 and an output OUTPUT0 like it, on the host. What
 * a model does with them its name says:
 *
 *   first, second  read the input by the host policy "cpu". Each waits until the other has read, so
 *                  that both requests live, and fails if both were given the same memory
 *   lazy           asks for the output on GPU 0, and writes nothing
 *   any other      copies the input */
#include "triton/core/tritonbackend.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `read_at` */
static pthread_cond_t met = PTHREAD_COND_INITIALIZER;
static const void *read_at[2]; /* of first and second */

struct work {
    const char *model;
    TRITONBACKEND_Request *request;
    TRITONBACKEND_Response *response;
};

static TRITONSERVER_Error *meet(const char *model, const void *at)
{
    int mine = strcmp(model, "second") == 0;
    pthread_mutex_lock(&lock);
    read_at[mine] = at;
    pthread_cond_broadcast(&met);
    while (!read_at[!mine])
        pthread_cond_wait(&met, &lock);
    int same = read_at[0] == read_at[1];
    pthread_mutex_unlock(&lock);
    return same ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                        "two requests were given the same copy of an input")
                : NULL;
}

static TRITONSERVER_Error *work(struct work *w)
{
    TRITONBACKEND_Input *in;
    TRITONBACKEND_Output *out;
    const int64_t *shape;
    uint32_t rank;
    uint64_t size;
    const void *from;
    void *to;
    TRITONSERVER_MemoryType wanted = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_MemoryType type = wanted;
    int64_t id = 0;
    int pair = strcmp(w->model, "first") == 0 || strcmp(w->model, "second") == 0;
    const char *policy = pair ? "cpu" : NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_RequestInput(w->request, "INPUT0", &in);
    if (!e)
        e = TRITONBACKEND_InputPropertiesForHostPolicy(in, policy, NULL, NULL, &shape, &rank, &size,
                                                       NULL);
    if (!e)
        e = TRITONBACKEND_InputBufferForHostPolicy(in, policy, 0, &from, &size, &type, &id);
    if (!e && pair)
        e = meet(w->model, from);
    if (!e)
        e = TRITONBACKEND_ResponseOutput(w->response, &out, "OUTPUT0", TRITONSERVER_TYPE_FP32,
                                         shape, rank);
    if (!e && strcmp(w->model, "lazy") == 0)
        wanted = TRITONSERVER_MEMORY_GPU;
    type = wanted;
    if (!e)
        e = TRITONBACKEND_OutputBuffer(out, &to, size, &type, &id);
    if (!e && type != wanted)
        e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "the output lies elsewhere");
    if (!e && type == TRITONSERVER_MEMORY_CPU)
        memcpy(to, from, size);
    return e;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t count)
{
    TRITONBACKEND_Model *model;
    struct work w;
    TRITONSERVER_Error *e = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!e)
        e = TRITONBACKEND_ModelName(model, &w.model);
    for (uint32_t i = 0; !e && i < count; i++) {
        w.request = requests[i];
        e = TRITONBACKEND_ResponseNew(&w.response, w.request);
        if (e)
            return e;
        TRITONSERVER_Error *failed = work(&w);
        e = TRITONBACKEND_ResponseSend(w.response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, failed);
        TRITONSERVER_ErrorDelete(failed);
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestRelease(w.request, TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    return e;
}
