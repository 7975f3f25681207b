/* Takes the place of an ONNX Runtime with CUDA, where there is no GPU: the real library for
 * processors, of which a backend sees two execution providers more. They compute nothing: a session
 * "on a GPU" computes on the host, in memory of the host, and waits for no stream. It shows who makes
 * which session, that what is queued for it is waited for, and what is left.
 * NEREID_ONNXRUNTIME         the real library
 * NEREID_ONNXRUNTIME_REPORT  a file; lines are added: "made" and "freed" with a session's number and
 *                            cpu or gpu, "NAME=VALUE" for the settings of providers */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onnxruntime_c_api.h>

enum { SESSIONS = 256 };

static const OrtApi *real;
static OrtApi shown;
static const char *const providers[] = {"TensorrtExecutionProvider", "CUDAExecutionProvider",
                                        "CPUExecutionProvider"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Options and sessions of which one is on a GPU. */
static const void *on_gpus[2 * SESSIONS];

static void report(const char *what, const char *value)
{
    const char *path = getenv("NEREID_ONNXRUNTIME_REPORT");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file, "%s%s\n", what, value);
    fclose(file);
}

static bool is_on_gpu(const void *of)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < 2 * SESSIONS; i++)
        found = found || on_gpus[i] == of;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Puts `to` in the place of `from`; NULL is an empty place. */
static void exchange(const void *from, const void *to)
{
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < 2 * SESSIONS && on_gpus[i] != from)
        i++;
    if (i < 2 * SESSIONS)
        on_gpus[i] = to;
    pthread_mutex_unlock(&lock);
}

static OrtStatus *ORT_API_CALL get_available(char ***names, int *count)
{
    *count = sizeof providers / sizeof *providers;
    *names = calloc((size_t)*count, sizeof **names);
    for (int i = 0; i < *count; i++)
        (*names)[i] = strdup(providers[i]);
    return NULL;
}

static OrtStatus *ORT_API_CALL release_available(char **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return NULL;
}

static OrtStatus *ORT_API_CALL cuda_new(OrtCUDAProviderOptionsV2 **ret)
{
    *ret = calloc(1, 1);
    return NULL;
}

static void report_all(const char *const *keys, const char *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s=", keys[i]);
        report(line, values[i]);
    }
}

static OrtStatus *ORT_API_CALL cuda_update(OrtCUDAProviderOptionsV2 *of, const char *const *keys,
                                           const char *const *values, size_t count)
{
    (void)of;
    report_all(keys, values, count);
    return NULL;
}

static OrtStatus *ORT_API_CALL cuda_update_one(OrtCUDAProviderOptionsV2 *of, const char *key,
                                               void *value)
{
    (void)of;
    report(key, value ? "=there" : "=none");
    return NULL;
}

static OrtStatus *ORT_API_CALL cuda_append(OrtSessionOptions *options,
                                           const OrtCUDAProviderOptionsV2 *of)
{
    (void)of;
    exchange(NULL, options);
    return NULL;
}

static void ORT_API_CALL cuda_free(OrtCUDAProviderOptionsV2 *of)
{
    free(of);
}

static OrtStatus *ORT_API_CALL tensorrt_new(OrtTensorRTProviderOptionsV2 **ret)
{
    *ret = calloc(1, 1);
    return NULL;
}

static OrtStatus *ORT_API_CALL tensorrt_update(OrtTensorRTProviderOptionsV2 *of,
                                               const char *const *keys, const char *const *values,
                                               size_t count)
{
    (void)of;
    report_all(keys, values, count);
    return NULL;
}

static OrtStatus *ORT_API_CALL tensorrt_update_one(OrtTensorRTProviderOptionsV2 *of,
                                                   const char *key, void *value)
{
    (void)of;
    report(key, value ? "=there" : "=none");
    return NULL;
}

static OrtStatus *ORT_API_CALL tensorrt_append(OrtSessionOptions *options,
                                               const OrtTensorRTProviderOptionsV2 *of)
{
    (void)options;
    (void)of;
    report("tensorrt", "");
    return NULL;
}

static void ORT_API_CALL tensorrt_free(OrtTensorRTProviderOptionsV2 *of)
{
    free(of);
}

static OrtStatus *ORT_API_CALL memory_new(const char *name, enum OrtAllocatorType type, int id,
                                          enum OrtMemType kind, OrtMemoryInfo **ret)
{
    if (strcmp(name, "Cuda") == 0)
        return real->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, ret);
    return real->CreateMemoryInfo(name, type, id, kind, ret);
}

static void ORT_API_CALL options_free(OrtSessionOptions *options)
{
    exchange(options, NULL);
    real->ReleaseSessionOptions(options);
}

static OrtStatus *ORT_API_CALL session_new(const OrtEnv *env, const char *path,
                                           const OrtSessionOptions *options, OrtSession **ret)
{
    bool on_gpu = is_on_gpu(options);
    OrtStatus *status = real->CreateSession(env, path, options, ret);
    if (!status && on_gpu)
        exchange(NULL, *ret);
    if (!status)
        report("made ", on_gpu ? "gpu" : "cpu");
    return status;
}

static void ORT_API_CALL session_free(OrtSession *session)
{
    report("freed ", is_on_gpu(session) ? "gpu" : "cpu");
    exchange(session, NULL);
    real->ReleaseSession(session);
}

static const OrtApi *ORT_API_CALL get_api(uint32_t version)
{
    if (!real)
        return NULL;
    (void)version;
    shown = *real;
    shown.GetAvailableProviders = get_available;
    shown.ReleaseAvailableProviders = release_available;
    shown.CreateCUDAProviderOptions = cuda_new;
    shown.UpdateCUDAProviderOptions = cuda_update;
    shown.UpdateCUDAProviderOptionsWithValue = cuda_update_one;
    shown.SessionOptionsAppendExecutionProvider_CUDA_V2 = cuda_append;
    shown.ReleaseCUDAProviderOptions = cuda_free;
    shown.CreateTensorRTProviderOptions = tensorrt_new;
    shown.UpdateTensorRTProviderOptions = tensorrt_update;
    shown.UpdateTensorRTProviderOptionsWithValue = tensorrt_update_one;
    shown.SessionOptionsAppendExecutionProvider_TensorRT_V2 = tensorrt_append;
    shown.ReleaseTensorRTProviderOptions = tensorrt_free;
    shown.CreateMemoryInfo = memory_new;
    shown.ReleaseSessionOptions = options_free;
    shown.CreateSession = session_new;
    shown.ReleaseSession = session_free;
    return &shown;
}

const OrtApiBase *ORT_API_CALL OrtGetApiBase(void)
{
    static OrtApiBase base;
    const char *path = getenv("NEREID_ONNXRUNTIME");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *found = library ? dlsym(library, "OrtGetApiBase") : NULL;
    const OrtApiBase *(*get_base)(void);
    memcpy(&get_base, &found, sizeof get_base);
    if (!found)
        return NULL;
    base = *get_base();
    real = base.GetApi(ORT_API_VERSION);
    base.GetApi = get_api;
    return &base;
}
