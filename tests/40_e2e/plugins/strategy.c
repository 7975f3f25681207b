/* strategy: a batching strategy that lets requests into a batch until the numbers that they
 * bring exceed 10 together, and writes down what it is asked. Parameters of the model, as
 * string_value:
 *   journal  a file: B and b for the beginning and the end of the batcher, [ and ] for those of
 *            a batch, y or n for a request; ! before [ if the thread is in a backend's Execute, which
 *            may hold what a strategy waits for
 *   fails    which of the five functions fails: batcher, end, begin, include, finish
 *   never    no request is let in
 *   meddles  it does with the requests what only their backend may, and writes down r for each call
 *            that is refused */
#include "triton/core/tritonbackend.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 10

struct batcher {
    int journal;
    char fails[32];
    int never;
    int meddles;
};

struct batch {
    const struct batcher *batcher;
    int sum;
};

static int find(const char *json, const char *key, char *ret, size_t size)
{
    char pattern[64];
    snprintf(pattern, sizeof(pattern), "\"%s\":{\"string_value\":\"%%%zu[^\"]\"", key, size - 1);
    for (const char *at = json; (at = strchr(at, '"')) != NULL; at++)
        if (sscanf(at, pattern, ret) == 1)
            return 1;
    return 0;
}

static void tell(const struct batcher *b, const char *what)
{
    if (write(b->journal, what, 1) != 1)
        abort();
}

/* Whether a backend that sends an answer called us. */
static int is_in_execute(void)
{
    void *frames[64];
    int count = backtrace(frames, 64);
    Dl_info where;
    for (int i = 0; i < count; i++)
        if (dladdr(frames[i], &where) && where.dli_sname &&
            strcmp(where.dli_sname, "TRITONBACKEND_ResponseSend") == 0)
            return 1;
    return 0;
}

static TRITONSERVER_Error *fail(const struct batcher *b, const char *entry)
{
    char text[64];
    snprintf(text, sizeof(text), "%s fails on purpose", entry);
    return strcmp(b->fails, entry) == 0
               ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, text)
               : NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher,
                                                         TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message;
    const char *json;
    size_t len;
    char path[256];
    TRITONSERVER_Error *e = TRITONBACKEND_ModelConfig(model, 1, &message);
    if (!e)
        e = TRITONSERVER_MessageSerializeToJson(message, &json, &len);
    if (e)
        return e;
    struct batcher *b = calloc(1, sizeof(*b));
    char *text = strndup(json, len);
    if (!find(text, "journal", path, sizeof(path)))
        abort();
    find(text, "fails", b->fails, sizeof(b->fails));
    b->never = strstr(text, "\"never\"") != NULL;
    b->meddles = strstr(text, "\"meddles\"") != NULL;
    b->journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    free(text);
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    tell(b, "B");
    *batcher = (TRITONBACKEND_Batcher *)b;
    return fail(b, "batcher");
}

#ifndef WITHOUT_FINALIZE
TRITONSERVER_Error *TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher)
{
    struct batcher *b = (struct batcher *)batcher;
    tell(b, "b");
    TRITONSERVER_Error *e = fail(b, "end");
    close(b->journal);
    free(b);
    return e;
}
#endif

TRITONSERVER_Error *TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher,
                                                       void **userp)
{
    const struct batcher *b = (const struct batcher *)batcher;
    struct batch *batch = calloc(1, sizeof(*batch));
    batch->batcher = b;
    if (is_in_execute())
        tell(b, "!");
    tell(b, "[");
    *userp = batch;
    return fail(b, "begin");
}

static TRITONSERVER_Error *number_of(TRITONBACKEND_Request *request, int *ret)
{
    TRITONBACKEND_Input *input;
    const void *data;
    uint64_t bytes;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    TRITONSERVER_Error *e = TRITONBACKEND_RequestInput(request, "INPUT0", &input);
    if (!e)
        e = TRITONBACKEND_InputBuffer(input, 0, &data, &bytes, &type, &id);
    if (!e)
        memcpy(ret, data, sizeof(*ret));
    return e;
}

static void refused(const struct batcher *b, TRITONSERVER_Error *e)
{
    if (e && TRITONSERVER_ErrorCode(e) == TRITONSERVER_ERROR_INVALID_ARG)
        tell(b, "r");
    TRITONSERVER_ErrorDelete(e);
}

static void meddle(const struct batcher *b, TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Response *response;
    TRITONBACKEND_ResponseFactory *factory;
    refused(b, TRITONBACKEND_ResponseNew(&response, request));
    refused(b, TRITONBACKEND_ResponseFactoryNew(&factory, request));
    refused(b, TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONSERVER_Error *TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request,
                                                           void *userp, bool *should_include)
{
    struct batch *batch = userp;
    int number = 0;
    TRITONSERVER_Error *e = number_of(request, &number);
    if (e)
        return e;
    if (batch->batcher->meddles)
        meddle(batch->batcher, request);
    *should_include = !batch->batcher->never && batch->sum + number <= MOST;
    batch->sum += *should_include ? number : 0;
    tell(batch->batcher, *should_include ? "y" : "n");
    return fail(batch->batcher, "include");
}

TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(void *userp)
{
    struct batch *batch = userp;
    const struct batcher *b = batch->batcher;
    tell(b, "]");
    free(batch);
    return fail(b, "finish");
}
