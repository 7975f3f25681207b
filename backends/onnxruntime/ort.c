#include "ort.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"
#include "../common/cpus.h"

enum { DEFAULT_MAX_BATCH_SIZE = 4 };

static TRITONSERVER_Error *onnxruntime_ort_about(TRITONSERVER_Error *err, const char *setting)
{
    return berr_about(err, "backend 'onnxruntime', setting '%s'", setting);
}

static TRITONSERVER_Error *
onnxruntime_ort_read_number(yyjson_val *cmdline, const char *key, int64_t *ret_value,
                            TRITONSERVER_Error *(*parse)(const char *, int64_t *))
{
    const char *text = yyjson_get_str(yyjson_obj_get(cmdline, key));
    return text ? onnxruntime_ort_about(parse(text, ret_value), key) : NULL;
}

static TRITONSERVER_Error *onnxruntime_ort_read_settings(TRITONBACKEND_Backend *backend,
                                                         struct ort_settings *settings,
                                                         char **ret_library)
{
    static const char *const NAMES[] = {"library", "enable-global-threadpool",
                                        "intra_op_thread_count", "inter_op_thread_count", NULL};
    yyjson_doc *doc;
    TRITONSERVER_Error *err = bconfig_of_backend(backend, &doc);
    if (err)
        return err;
    yyjson_val *cmdline = yyjson_obj_get(yyjson_doc_get_root(doc), "cmdline");
    const char *library = yyjson_get_str(yyjson_obj_get(cmdline, "library"));
    *ret_library = library ? strdup(library) : NULL;
    settings->default_max_batch_size = DEFAULT_MAX_BATCH_SIZE;
    const char *pool = yyjson_get_str(yyjson_obj_get(cmdline, "enable-global-threadpool"));
    settings->pool_given = pool != NULL;
    if (pool)
        err = onnxruntime_ort_about(bconfig_parse_bool(pool, &settings->pool_enabled),
                                    "enable-global-threadpool");
    if (!err)
        err = onnxruntime_ort_read_number(cmdline, "default-max-batch-size",
                                          &settings->default_max_batch_size, bconfig_parse_int);
    if (!err)
        err = onnxruntime_ort_read_number(cmdline, "intra_op_thread_count",
                                          &settings->intra_op_threads, bconfig_parse_threads);
    if (!err)
        err = onnxruntime_ort_read_number(cmdline, "inter_op_thread_count",
                                          &settings->inter_op_threads, bconfig_parse_threads);
    if (!err)
        bconfig_warn_unknown(backend, cmdline, NAMES);
    yyjson_doc_free(doc);
    return err;
}

void ort_free(struct ort *ort)
{
    if (!ort)
        return;
    ort_free(ort->openvino);
    pthread_mutex_destroy(&ort->lock);
    if (ort->cpu)
        ort->api->ReleaseMemoryInfo(ort->cpu);
    if (ort->env)
        ort->api->ReleaseEnv(ort->env);
    free(ort->folder);
    free(ort);
}

/* A distribution's name of the library ends with the version whose header this was built on. */
#define QUOTED(text)     #text
#define DISTRIBUTED(api) "libonnxruntime.so.1." QUOTED(api)

/* Loads the library that was told; without one, the library next to the backend, else one of the
 * system. */
static TRITONSERVER_Error *load_library(const char *folder, const char *told, void **ret_library)
{
    static const char *const of_system[] = {"libonnxruntime.so.1", DISTRIBUTED(ORT_API_VERSION)};
    char *beside;
    if (asprintf(&beside, "%s/libonnxruntime.so.1", folder) < 0)
        return berr_no_memory();
    const char *first = told ? told : beside;
    void *library = dlopen(first, RTLD_NOW | RTLD_LOCAL);
    TRITONSERVER_Error *err = NULL;
    if (!library) {
        const char *reason = dlerror();
        err = berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "ONNX Runtime cannot be loaded: %s",
                       reason ? reason : first);
    }
    bool may_search = !told && access(beside, F_OK) != 0;
    for (size_t i = 0; !library && may_search && i < sizeof of_system / sizeof *of_system; i++)
        library = dlopen(of_system[i], RTLD_NOW | RTLD_LOCAL);
    free(beside);
    if (!library)
        return err;
    berr_drop(err);
    *ret_library = library;
    return NULL;
}

static TRITONSERVER_Error *load_api(struct ort *ort, const char *told)
{
    void *library = NULL;
    TRITONSERVER_Error *err = load_library(ort->folder, told, &library);
    if (err)
        return err;
    const OrtApiBase *(*get_base)(void);
    *(void **)&get_base = dlsym(library, "OrtGetApiBase");
    if (!get_base)
        return berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "'%s' is not ONNX Runtime",
                        told ? told : ort->folder);
    ort->api = get_base()->GetApi(ORT_API_VERSION);
    if (!ort->api)
        return berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                        "ONNX Runtime %s is too old: interface version %d is needed",
                        get_base()->GetVersionString(), ORT_API_VERSION);
    blog_info("ONNX Runtime %s is loaded", get_base()->GetVersionString());
    return NULL;
}

static TRITONSERVER_LogLevel onnxruntime_ort_level(OrtLoggingLevel severity)
{
    switch (severity) {
    case ORT_LOGGING_LEVEL_VERBOSE:
    case ORT_LOGGING_LEVEL_INFO:
        return TRITONSERVER_LOG_VERBOSE;
    case ORT_LOGGING_LEVEL_WARNING:
        return TRITONSERVER_LOG_WARN;
    case ORT_LOGGING_LEVEL_ERROR:
    case ORT_LOGGING_LEVEL_FATAL:
        break;
    }
    return TRITONSERVER_LOG_ERROR;
}

enum { LAST_ERROR = 512 };

char *ort_last_error(void)
{
    static _Thread_local char text[LAST_ERROR];
    return text;
}

static void ORT_API_CALL write_log(void *unused, OrtLoggingLevel severity, const char *category,
                                   const char *id, const char *place, const char *text)
{
    (void)unused;
    (void)category;
    (void)id;
    /* `place` is FILE:LINE FUNCTION */
    char file[128];
    size_t length = strcspn(place, ":");
    snprintf(file, sizeof file, "%.*s", (int)length, place);
    long line = place[length] ? strtol(place + length + 1, NULL, 10) : 0;
    TRITONSERVER_LogLevel level = onnxruntime_ort_level(severity);
    if (level == TRITONSERVER_LOG_ERROR)
        snprintf(ort_last_error(), LAST_ERROR, "%s", text);
    berr_drop(TRITONSERVER_LogMessage(level, file, (int)line, text));
}

/* Switches off the runtime's usage reports to its maker, which use files in the user's home.
 * This must happen before its environment is made. Users who want the reports set the variable
 * to 0. The first change of the process's environment does not move what other threads may be
 * reading. */
static void keep_to_oneself(void)
{
    setenv("ORT_DISABLE_TELEMETRY", "1", 0);
}

/* Makes the environment. One thread pool for all models keeps the number of threads at the
 * number of processors, however many models are loaded. Idle threads sleep: spinning would take
 * CPU time from the server. */
static OrtStatus *make_env(struct ort *ort)
{
    const OrtApi *api = ort->api;
    const struct ort_settings *settings = &ort->settings;
    /* Details about each graph are logged only at verbose level. */
    OrtLoggingLevel least = TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE)
                                ? ORT_LOGGING_LEVEL_INFO
                                : ORT_LOGGING_LEVEL_WARNING;
    if (settings->pool_given && !settings->pool_enabled)
        return api->CreateEnvWithCustomLogger(write_log, NULL, least, "onnxruntime", &ort->env);
    int intra = settings->intra_op_threads > 0 ? (int)settings->intra_op_threads : ort->processors;
    int inter = settings->inter_op_threads > 0 ? (int)settings->inter_op_threads
                : settings->pool_enabled       ? ort->processors
                                               : 1;
    OrtThreadingOptions *threading = NULL;
    OrtStatus *status = api->CreateThreadingOptions(&threading);
    if (!status)
        status = api->SetGlobalIntraOpNumThreads(threading, intra);
    if (!status)
        status = api->SetGlobalInterOpNumThreads(threading, inter);
    if (!status)
        status = api->SetGlobalSpinControl(threading, 0);
    if (!status)
        status = api->CreateEnvWithCustomLoggerAndGlobalThreadPools(
            write_log, NULL, least, "onnxruntime", threading, &ort->env);
    if (threading)
        api->ReleaseThreadingOptions(threading);
    return status;
}

TRITONSERVER_Error *ort_has_provider(const struct ort *ort, const char *name, bool *ret_has)
{
    char **names;
    int count;
    TRITONSERVER_Error *err = ort_err(ort->api, ort->api->GetAvailableProviders(&names, &count));
    if (err)
        return err;
    *ret_has = false;
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            *ret_has = true;
    return ort_err(ort->api, ort->api->ReleaseAvailableProviders(names, count));
}

static TRITONSERVER_Error *onnxruntime_ort_start(struct ort *ort, const char *told)
{
    TRITONSERVER_Error *err = load_api(ort, told);
    if (err)
        return err;
    ort->processors = cpus_usable();
    keep_to_oneself();
    OrtStatus *status = make_env(ort);
    if (!status)
        status = ort->api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &ort->cpu);
    err = ort_err(ort->api, status);
    return err ? err : ort_has_provider(ort, "CUDAExecutionProvider", &ort->has_cuda);
}

/* Opens the runtime in a folder; owns the folder's name. */
static TRITONSERVER_Error *open_runtime(char *folder, const char *told,
                                        const struct ort_settings *settings, struct ort **ret_ort)
{
    struct ort *ort = folder ? calloc(1, sizeof *ort) : NULL;
    if (!ort) {
        free(folder);
        return berr_no_memory();
    }
    ort->folder = folder;
    ort->settings = *settings;
    pthread_mutex_init(&ort->lock, NULL);
    TRITONSERVER_Error *err = onnxruntime_ort_start(ort, told);
    if (err) {
        ort_free(ort);
        return err;
    }
    *ret_ort = ort;
    return NULL;
}

TRITONSERVER_Error *ort_new(TRITONBACKEND_Backend *backend, struct ort **ret_ort)
{
    TRITONBACKEND_ArtifactType kind;
    const char *folder;
    char *library = NULL;
    struct ort_settings settings = {0};
    TRITONSERVER_Error *err = TRITONBACKEND_BackendArtifacts(backend, &kind, &folder);
    if (!err)
        err = onnxruntime_ort_read_settings(backend, &settings, &library);
    if (!err)
        err = open_runtime(strdup(folder), library, &settings, ret_ort);
    free(library);
    return err;
}

TRITONSERVER_Error *ort_with_openvino(struct ort *ort, struct ort **ret_ort)
{
    char *folder;
    if (!ort->openvino) {
        if (asprintf(&folder, "%s/openvino", ort->folder) < 0)
            return berr_no_memory();
        if (access(folder, F_OK) != 0) {
            TRITONSERVER_Error *err =
                berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                         "Execution Accelerator 'openvino' is requested, but the ONNX Runtime that "
                         "has it is not "
                         "installed in '%s': install with BACKENDS=onnxruntime-openvino",
                         folder);
            free(folder);
            return err;
        }
        TRITONSERVER_Error *err = open_runtime(folder, NULL, &ort->settings, &ort->openvino);
        if (err)
            return err;
    }
    *ret_ort = ort->openvino;
    return NULL;
}

TRITONSERVER_Error *ort_err(const OrtApi *api, OrtStatus *status)
{
    if (!status)
        return NULL;
    TRITONSERVER_Error *err =
        berr_new(TRITONSERVER_ERROR_INTERNAL, "onnx runtime error %d: %s",
                 (int)api->GetErrorCode(status), api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    return err;
}
