#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/bconfig.h"
#include "../common/bcuda.h"
#include "../common/berr.h"
#include "../common/bfile.h"
#include "netdef_file.h"
#include "options.h"

enum { SESSION_ON_CPU = -1 };

static const char default_file[] = "model.onnx";

/* Finds REPOSITORY/VERSION/FILE, or REPOSITORY/VERSION/FILE/model.onnx if FILE is a directory:
 * the main file always has that name. */
static TRITONSERVER_Error *session_find_file(const struct model *model, char **ret_path)
{
    char *path;
    struct stat status;
    TRITONSERVER_Error *err = bfile_path(model->handle, model->config, default_file, &path);
    if (err)
        return err;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        char *directory = path;
        int length = asprintf(&path, "%s/%s", directory, default_file);
        free(directory);
        if (length < 0)
            return berr_no_memory();
    }
    if (stat(path, &status) != 0) {
        err = berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                       "unable to find '%s' for model instance '%s': %s", path, model->name,
                       strerror(errno));
    } else {
        err = bfile_check_kind(path, model->name);
    }
    if (err) {
        free(path);
        return err;
    }
    *ret_path = path;
    return NULL;
}

static TRITONSERVER_Error *open_onnx(const struct model *model, const OrtSessionOptions *options,
                                     OrtSession **ret_handle)
{
    char *path = NULL;
    TRITONSERVER_Error *err = session_find_file(model, &path);
    if (!err)
        err = ort_err(model->api,
                      model->api->CreateSession(model->ort->env, path, options, ret_handle));
    free(path);
    return err;
}

/* The stream, and how ONNX Runtime calls memory of this GPU. */
static TRITONSERVER_Error *session_open_gpu(const struct model *model, int32_t device,
                                            struct session *session)
{
    OrtMemoryInfo *memory = NULL;
    session->gpu.device = device;
    TRITONSERVER_Error *err = bcuda_open_on(model->handle, device, BCUDA_USUAL, &session->cuda);
    if (!err)
        err = bcuda_stream(session->cuda, &session->gpu.stream);
    if (!err)
        err = ort_err(model->api, model->api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, device,
                                                               OrtMemTypeDefault, &memory));
    session->memory = memory;
    return err;
}

static TRITONSERVER_Error *session_open_graph(struct model *model, struct session *session)
{
    OrtSessionOptions *options = NULL;
    TRITONSERVER_Error *err =
        options_new(model->ort, model->config, session->cuda ? &session->gpu : NULL, &options);
    if (!err)
        err = model->is_netdef ? netdef_file_open(model, options, &session->handle)
                               : open_onnx(model, options, &session->handle);
    if (options)
        model->api->ReleaseSessionOptions(options);
    if (!err && session->cuda)
        err = ort_err(model->api, model->api->CreateAllocator(session->handle, session->memory,
                                                              &session->allocator));
    return err;
}

/* What is queued in it has ended. */
static void free_session(const struct model *model, struct session *session)
{
    /* ONNX Runtime's function takes a non-const pointer, as it frees it. */
    union {
        const OrtMemoryInfo *of;
        OrtMemoryInfo *own;
    } memory = {session ? session->memory : NULL};
    if (!session)
        return;
    if (session->allocator)
        model->api->ReleaseAllocator(session->allocator);
    if (session->handle)
        model->api->ReleaseSession(session->handle);
    if (memory.own)
        model->api->ReleaseMemoryInfo(memory.own);
    bcuda_close(session->cuda);
    free(session);
}

static TRITONSERVER_Error *session_open(struct model *model, int32_t device,
                                        struct session **ret_session)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return berr_no_memory();
    TRITONSERVER_Error *err =
        device == SESSION_ON_CPU ? NULL : session_open_gpu(model, device, session);
    if (!err)
        err = session_open_graph(model, session);
    if (err)
        free_session(model, session);
    else
        *ret_session = session;
    return err;
}

/* With OpenVINO, the runtime makes one session at a time. */
static TRITONSERVER_Error *open_with_openvino(struct model *model, struct session **ret_session)
{
    struct ort *plain = model->ort;
    pthread_mutex_lock(&plain->lock);
    TRITONSERVER_Error *err = ort_with_openvino(plain, &model->ort);
    if (!err) {
        model->api = model->ort->api;
        err = session_open(model, SESSION_ON_CPU, ret_session);
    }
    pthread_mutex_unlock(&plain->lock);
    return err;
}

TRITONSERVER_Error *session_read(struct model *model, const OrtSession **ret_handle)
{
    int32_t device = model->ort->has_cuda ? bconfig_first_gpu(model->config) : SESSION_ON_CPU;
    struct session **kept = device == SESSION_ON_CPU ? &model->on_cpu : &model->spare;
    TRITONSERVER_Error *err = device == SESSION_ON_CPU && accelerators_want_openvino(model->config)
                                  ? open_with_openvino(model, kept)
                                  : session_open(model, device, kept);
    if (!err)
        *ret_handle = (*kept)->handle;
    return err;
}

/* The one that all instances on the CPU share; the caller has the lock. */
static TRITONSERVER_Error *share_on_cpu(struct model *model, struct session **ret_session)
{
    TRITONSERVER_Error *err =
        model->on_cpu ? NULL : session_open(model, SESSION_ON_CPU, &model->on_cpu);
    *ret_session = model->on_cpu;
    return err;
}

static TRITONSERVER_Error *take_on_gpu(struct model *model, int32_t device,
                                       struct session **ret_session)
{
    if (!model->ort->has_cuda)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "unable to load model '%s', this ONNX Runtime runs on CPU only: use "
                        "KIND_CPU",
                        model->name);
    pthread_mutex_lock(&model->lock);
    if (model->spare && model->spare->gpu.device == device) {
        *ret_session = model->spare;
        model->spare = NULL;
    }
    pthread_mutex_unlock(&model->lock);
    return *ret_session ? NULL : session_open(model, device, ret_session);
}

TRITONSERVER_Error *session_take(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct session **ret_session)
{
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (!err)
        err = TRITONBACKEND_ModelInstanceDeviceId(handle, &device);
    if (err)
        return err;
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return take_on_gpu(model, device, ret_session);
    pthread_mutex_lock(&model->lock);
    err = share_on_cpu(model, ret_session);
    pthread_mutex_unlock(&model->lock);
    return err;
}

void session_give(struct model *model, struct session *session)
{
    if (session && session->cuda)
        free_session(model, session);
}

TRITONSERVER_Error *session_check(const struct session *session)
{
    void *stream = NULL;
    TRITONSERVER_Error *err = bcuda_stream(session->cuda, &stream);
    if (err || stream == session->gpu.stream)
        return err;
    return berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                    "GPU %d failed in an earlier request, and ONNX Runtime cannot go on with what "
                    "it had there: load the model again",
                    (int)session->gpu.device);
}

void session_fini(struct model *model)
{
    free_session(model, model->on_cpu);
    free_session(model, model->spare);
}
