#include "10_inprocess/host.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sync {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

void host_ok(TRITONSERVER_Error *e, const char *call, const char *file, int line)
{
    if (!e)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, TRITONSERVER_ErrorMessage(e));
    TRITONSERVER_ErrorDelete(e);
    _fail(file, line);
}

void host_fails(TRITONSERVER_Error *e, TRITONSERVER_Error_Code code, const char *part,
                const char *call, const char *file, int line)
{
    if (!e) {
        fprintf(stderr, "%s:%d: %s: succeeded\n", file, line, call);
        _fail(file, line);
    }
    if (TRITONSERVER_ErrorCode(e) != code || !strstr(TRITONSERVER_ErrorMessage(e), part)) {
        fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, TRITONSERVER_ErrorCodeString(e),
                TRITONSERVER_ErrorMessage(e));
        _fail(file, line);
    }
    TRITONSERVER_ErrorDelete(e);
}

void host_repository_make(struct host_repository *r)
{
    snprintf(r->path, sizeof(r->path), "/tmp/nereid-host-XXXXXX");
    assert_non_null(mkdtemp(r->path));
}

void host_repository_write(const struct host_repository *r, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", r->path, file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

void host_repository_add(const struct host_repository *r, const char *model, const char *config)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", r->path, model);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/%s/1", r->path, model);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/config.pbtxt", model);
    if (config)
        host_repository_write(r, path, config);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void host_repository_remove(struct host_repository *r)
{
    nftw(r->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TRITONSERVER_ServerOptions *host_options(const char *repository, const char *backends)
{
    TRITONSERVER_ServerOptions *o;
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", TEST_BINARY_DIR, backends);
    HOST_OK(TRITONSERVER_ServerOptionsNew(&o));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, repository));
    HOST_OK(TRITONSERVER_ServerOptionsSetBackendDirectory(o, path));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogInfo(o, false));
    return o;
}

TRITONSERVER_Server *host_server(TRITONSERVER_ServerOptions *options)
{
    TRITONSERVER_Server *s;
    HOST_OK(TRITONSERVER_ServerNew(&s, options));
    HOST_OK(TRITONSERVER_ServerOptionsDelete(options));
    return s;
}

static struct sync *enter(struct host_call *c)
{
    struct sync *y = c->sync;
    pthread_mutex_lock(&y->lock);
    return y;
}

static void leave(struct sync *y)
{
    pthread_cond_broadcast(&y->changed);
    pthread_mutex_unlock(&y->lock);
}

static TRITONSERVER_Error *alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                 size_t byte_size, TRITONSERVER_MemoryType type, int64_t id,
                                 void *userp, void **buffer, void **buffer_userp,
                                 TRITONSERVER_MemoryType *actual_type, int64_t *actual_id)
{
    (void)allocator;
    (void)name;
    (void)id;
    struct host_call *c = userp;
    struct sync *y = enter(c);
    const char *refuse = c->refuse;
    c->allocated += !refuse;
    leave(y);
    if (refuse)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, refuse);
    bool gpu = c->gpu_get && type == TRITONSERVER_MEMORY_GPU;
    *buffer = gpu ? c->gpu_get(byte_size) : byte_size ? malloc(byte_size) : NULL;
    *buffer_userp = c;
    *actual_type = gpu ? TRITONSERVER_MEMORY_GPU : c->pretended;
    *actual_id = 0;
    return NULL;
}

static TRITONSERVER_Error *give_back(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                     void *buffer_userp, size_t byte_size,
                                     TRITONSERVER_MemoryType type, int64_t id)
{
    (void)allocator;
    (void)byte_size;
    (void)id;
    struct host_call *c = buffer_userp;
    struct sync *y = enter(c);
    c->given_back++;
    leave(y);
    if (type == TRITONSERVER_MEMORY_GPU)
        c->gpu_put(buffer);
    else
        free(buffer);
    return NULL;
}

static TRITONSERVER_Error *start(TRITONSERVER_ResponseAllocator *allocator, void *userp)
{
    (void)allocator;
    struct host_call *c = userp;
    struct sync *y = enter(c);
    c->started++;
    leave(y);
    return NULL;
}

static TRITONSERVER_Error *describe(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                    TRITONSERVER_BufferAttributes *attributes, void *userp,
                                    void *buffer_userp)
{
    (void)allocator;
    (void)name;
    struct host_call *c = userp;
    struct sync *y = enter(c);
    c->described += buffer_userp == c;
    leave(y);
    return TRITONSERVER_BufferAttributesSetCudaIpcHandle(attributes, NULL);
}

static TRITONSERVER_Error *query(TRITONSERVER_ResponseAllocator *allocator, void *userp,
                                 const char *name, size_t *byte_size, TRITONSERVER_MemoryType *type,
                                 int64_t *id)
{
    (void)allocator;
    (void)name;
    (void)byte_size;
    struct host_call *c = userp;
    struct sync *y = enter(c);
    c->queried++;
    leave(y);
    *type = TRITONSERVER_MEMORY_CPU;
    *id = 0;
    return NULL;
}

static void respond(TRITONSERVER_InferenceResponse *response, const uint32_t flags, void *userp)
{
    struct host_call *c = userp;
    struct sync *y = enter(c);
    if (c->callbacks < 16) {
        c->responses[c->callbacks] = response;
        c->flags[c->callbacks] = flags;
    }
    c->callbacks++;
    c->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    leave(y);
}

static void released(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *userp)
{
    struct host_call *c = userp;
    struct sync *y = enter(c);
    assert_ptr_equal(request, c->request);
    c->releases++;
    c->release_flags = flags;
    leave(y);
}

void host_call_make(struct host_call *c, TRITONSERVER_Server *s, const char *model)
{
    host_call_make_of(c, s, model, -1);
}

void host_call_make_of(struct host_call *c, TRITONSERVER_Server *s, const char *model,
                       int64_t version)
{
    struct sync *y = calloc(1, sizeof(*y));
    pthread_mutex_init(&y->lock, NULL);
    pthread_cond_init(&y->changed, NULL);
    *c = (struct host_call){.sync = y};
    HOST_OK(TRITONSERVER_ResponseAllocatorNew(&c->allocator, alloc, give_back, start));
    HOST_OK(TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(c->allocator, describe));
    HOST_OK(TRITONSERVER_ResponseAllocatorSetQueryFunction(c->allocator, query));
    HOST_OK(TRITONSERVER_InferenceRequestNew(&c->request, s, model, version));
    HOST_OK(TRITONSERVER_InferenceRequestSetReleaseCallback(c->request, released, c));
    HOST_OK(
        TRITONSERVER_InferenceRequestSetResponseCallback(c->request, c->allocator, c, respond, c));
}

void host_call_forget(struct host_call *c)
{
    for (unsigned i = 0; i < c->callbacks && i < 16; i++)
        HOST_OK(TRITONSERVER_InferenceResponseDelete(c->responses[i]));
    memset(c->responses, 0, sizeof(c->responses));
    c->callbacks = c->finals = c->releases = c->allocated = c->given_back = 0;
    c->started = c->described = c->queried = 0;
}

void host_call_free(struct host_call *c)
{
    host_call_forget(c);
    HOST_OK(TRITONSERVER_InferenceRequestDelete(c->request));
    HOST_OK(TRITONSERVER_ResponseAllocatorDelete(c->allocator));
    struct sync *y = c->sync;
    pthread_cond_destroy(&y->changed);
    pthread_mutex_destroy(&y->lock);
    free(y);
}

void host_call_input(struct host_call *c, const char *name, const int64_t *shape, uint64_t rank,
                     const float *data, size_t count)
{
    HOST_OK(TRITONSERVER_InferenceRequestAddInput(c->request, name, TRITONSERVER_TYPE_FP32, shape,
                                                  rank));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(
        c->request, name, data, count * sizeof(*data), TRITONSERVER_MEMORY_CPU, 0));
}

void host_call_wait(struct host_call *c)
{
    struct sync *y = c->sync;
    pthread_mutex_lock(&y->lock);
    while (!c->finals || !c->releases)
        pthread_cond_wait(&y->changed, &y->lock);
    pthread_mutex_unlock(&y->lock);
}

void host_call_run(struct host_call *c, TRITONSERVER_Server *s, TRITONSERVER_InferenceTrace *trace)
{
    HOST_OK(TRITONSERVER_ServerInferAsync(s, c->request, trace));
    host_call_wait(c);
}

const float *host_output(TRITONSERVER_InferenceResponse *r, uint32_t index, size_t *ret_count)
{
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t rank;
    const void *base;
    size_t bytes;
    TRITONSERVER_MemoryType type;
    int64_t id;
    void *userp;
    HOST_OK(TRITONSERVER_InferenceResponseError(r));
    HOST_OK(TRITONSERVER_InferenceResponseOutput(r, index, &name, &datatype, &shape, &rank, &base,
                                                 &bytes, &type, &id, &userp));
    assert_int_equal(datatype, TRITONSERVER_TYPE_FP32);
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    *ret_count = bytes / sizeof(float);
    return base;
}

char *host_text(TRITONSERVER_Message *m)
{
    const char *base;
    size_t len;
    HOST_OK(TRITONSERVER_MessageSerializeToJson(m, &base, &len));
    char *text = strndup(base, len);
    HOST_OK(TRITONSERVER_MessageDelete(m));
    return text;
}
