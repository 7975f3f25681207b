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

static TRITONSERVER_Error *open_onnx(const struct model *model, const struct ort *ort,
                                     const OrtSessionOptions *options, OrtSession **ret_handle)
{
    char *path = NULL;
    TRITONSERVER_Error *err = session_find_file(model, &path);
    if (!err)
        err = ort_err(ort->api, ort->api->CreateSession(ort->env, path, options, ret_handle));
    free(path);
    return err;
}

/* The stream, and how ONNX Runtime calls memory of this GPU. */
static TRITONSERVER_Error *session_open_gpu(const struct model *model, int32_t device,
                                            struct session *session)
{
    const OrtApi *api = session->ort->api;
    session->gpu.device = device;
    TRITONSERVER_Error *err = bcuda_open_on(model->handle, device, BCUDA_USUAL, &session->cuda);
    if (!err)
        err = bcuda_stream(session->cuda, &session->gpu.stream);
    return err ? err
               : ort_err(api, api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, device,
                                                    OrtMemTypeDefault, &session->memory));
}

static TRITONSERVER_Error *session_open_graph(struct model *model, struct session *session)
{
    const struct ort *ort = session->ort;
    OrtSessionOptions *options = NULL;
    TRITONSERVER_Error *err =
        options_new(ort, model->config, session->cuda ? &session->gpu : NULL, &options);
    if (!err)
        err = model->is_netdef ? netdef_file_open(model, ort, options, &session->handle)
                               : open_onnx(model, ort, options, &session->handle);
    if (options)
        ort->api->ReleaseSessionOptions(options);
    if (!err && session->cuda)
        err = ort_err(ort->api, ort->api->CreateAllocator(session->handle, session->memory,
                                                          &session->allocator));
    return err;
}

/* What is queued in it has ended. */
static void free_session(struct session *session)
{
    if (!session)
        return;
    const OrtApi *api = session->ort->api;
    if (session->allocator)
        api->ReleaseAllocator(session->allocator);
    if (session->handle)
        api->ReleaseSession(session->handle);
    if (session->memory)
        api->ReleaseMemoryInfo(session->memory);
    bcuda_close(session->cuda);
    free(session);
}

static TRITONSERVER_Error *session_open(struct model *model, struct ort *ort, int32_t device,
                                        struct session **ret_session)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return berr_no_memory();
    session->ort = ort;
    TRITONSERVER_Error *err =
        device == SESSION_ON_CPU ? NULL : session_open_gpu(model, device, session);
    if (!err)
        err = session_open_graph(model, session);
    if (err)
        free_session(session);
    else
        *ret_session = session;
    return err;
}

/* With OpenVINO, the runtime makes one session at a time. */
static TRITONSERVER_Error *session_open_on_cpu(struct model *model)
{
    if (!accelerators_want_openvino(model->config))
        return session_open(model, model->ort, SESSION_ON_CPU, &model->on_cpu);
    struct ort *with = NULL;
    pthread_mutex_lock(&model->ort->lock);
    TRITONSERVER_Error *err = ort_with_openvino(model->ort, &with);
    if (!err)
        err = session_open(model, with, SESSION_ON_CPU, &model->on_cpu);
    pthread_mutex_unlock(&model->ort->lock);
    return err;
}

TRITONSERVER_Error *session_read(struct model *model, const struct session **ret_session)
{
    int32_t device = model->ort->has_cuda ? bconfig_first_gpu(model->config) : SESSION_ON_CPU;
    TRITONSERVER_Error *err = device == SESSION_ON_CPU
                                  ? session_open_on_cpu(model)
                                  : session_open(model, model->ort, device, &model->spare);
    *ret_session = device == SESSION_ON_CPU ? model->on_cpu : model->spare;
    if (!err)
        model->read_api = (*ret_session)->ort->api;
    return err;
}

/* The one that all instances on the CPU share; the caller has the lock. */
static TRITONSERVER_Error *share_on_cpu(struct model *model, struct session **ret_session)
{
    TRITONSERVER_Error *err = model->on_cpu ? NULL : session_open_on_cpu(model);
    if (err)
        return err;
    model->on_cpu->users++;
    *ret_session = model->on_cpu;
    return NULL;
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
    return *ret_session ? NULL : session_open(model, model->ort, device, ret_session);
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

/* Without a user the one of the CPU goes: all instances may be on GPUs from now on. */
void session_give(struct model *model, struct session *session)
{
    if (!session)
        return;
    bool last = true;
    if (!session->cuda) {
        pthread_mutex_lock(&model->lock);
        last = --session->users == 0;
        if (last)
            model->on_cpu = NULL;
        pthread_mutex_unlock(&model->lock);
    }
    if (last)
        free_session(session);
}

TRITONSERVER_Error *session_check(const struct session *session)
{
    void *stream = NULL;
    TRITONSERVER_Error *err = bcuda_stream(session->cuda, &stream);
    if (err || stream == session->gpu.stream)
        return err;
    return berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                    "GPU %d failed in an earlier request, and ONNX Runtime cannot go on with what "
                    "it had there: unload the model and load it again",
                    (int)session->gpu.device);
}

void session_fini(struct model *model)
{
    free_session(model->on_cpu);
    free_session(model->spare);
}
