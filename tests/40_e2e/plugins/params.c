/* params: a backend that answers with the request's parameters, one string "name=value" each, in
 * order of names: the same file in both servers. */
#include "triton/core/tritonbackend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256 };

static void must(TRITONSERVER_Error *e)
{
    if (!e)
        return;
    fprintf(stderr, "params backend: %s\n", TRITONSERVER_ErrorMessage(e));
    abort();
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *describe(const char *name, TRITONSERVER_ParameterType type, const void *value)
{
    char *text = NULL;
    int n;
    if (type == TRITONSERVER_PARAMETER_STRING)
        n = asprintf(&text, "%s=%s", name, (const char *)value);
    else
        n = asprintf(&text, "%s=(type %d)", name, (int)type);
    if (n < 0)
        abort();
    return text;
}

static uint32_t collect(TRITONBACKEND_Request *request, char **texts)
{
    uint32_t count = 0;
    must(TRITONBACKEND_RequestParameterCount(request, &count));
    count = count < MOST ? count : MOST;
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_ParameterType type;
        const void *value;
        must(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value));
        texts[i] = describe(name, type, value);
    }
    qsort(texts, count, sizeof(*texts), compare);
    return count;
}

static void answer(TRITONBACKEND_Request *request)
{
    char *texts[MOST];
    uint32_t count = collect(request, texts);
    TRITONBACKEND_Response *response;
    TRITONBACKEND_Output *output;
    int64_t shape = count;
    uint64_t size = 0;
    void *buffer = NULL;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    for (uint32_t i = 0; i < count; i++)
        size += 4 + strlen(texts[i]);
    must(TRITONBACKEND_ResponseNew(&response, request));
    must(TRITONBACKEND_ResponseOutput(response, &output, "TEXT", TRITONSERVER_TYPE_BYTES, &shape,
                                      1));
    must(TRITONBACKEND_OutputBuffer(output, &buffer, size, &memory, &device));
    char *to = buffer;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t len = (uint32_t)strlen(texts[i]);
        memcpy(to, &len, 4);
        memcpy(to + 4, texts[i], len);
        to += 4 + len;
        free(texts[i]);
    }
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
