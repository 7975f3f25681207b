#include "instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bentry.h"
#include "common/berr.h"
#include "execute.h"
#include "host.h"
#include "lend.h"

struct instance {
    struct host *host;
};

/* Inputs on the GPU, for an instance that is there, of a model that wants them. Without a driver
 * that can be used it gets them on the host, as in the reference. */
static void instance_lend(struct host *host)
{
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
    if (!host->model->gpu_inputs)
        return;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(host->instance, &kind);
    if (!err && kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        err = lend_open(host->instance, &host->lend);
    berr_log(err, "Forcing CPU only input tensors");
}

static TRITONSERVER_Error *instance_initialize(struct host *host)
{
    const struct model *model = host->model;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(host->instance, &kind);
    if (!err)
        err = TRITONBACKEND_ModelInstanceDeviceId(host->instance, &device);
    if (err)
        return err;
    char number[16], version[24];
    snprintf(number, sizeof number, "%d", device);
    snprintf(version, sizeof version, "%llu", (unsigned long long)model->version);
    const char *texts[] = {model->file,
                           model->runtime->options->backend,
                           "model_config",
                           model->config,
                           "model_instance_kind",
                           TRITONSERVER_InstanceGroupKindString(kind),
                           "model_instance_name",
                           host->name,
                           "model_instance_device_id",
                           number,
                           "model_repository",
                           model->repository,
                           "model_version",
                           version,
                           "model_name",
                           model->name};
    return host_ask(host, LINK_INITIALIZE, model->decoupled, texts, sizeof texts / sizeof texts[0],
                    0, NULL);
}

/* The error of a start that failed, with which instance it was. */
static TRITONSERVER_Error *instance_not_back(const struct host *host, TRITONSERVER_Error *err)
{
    TRITONSERVER_Error *told = berr_new(
        TRITONSERVER_ERROR_INTERNAL,
        "Failed to process the request(s) for model instance '%s', message: Stub process '%s' "
        "is not healthy. It was started again and failed: %s",
        host->name, host->name, TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
    return told;
}

TRITONSERVER_Error *instance_revive(struct host *host)
{
    static const uint64_t PAUSE_NS = 1000000000;
    if (host->stub && !atomic_load(&host->stub->dead))
        return NULL;
    if (!host->stub && stub_now() - host->failed_ns < PAUSE_NS)
        return host_unhealthy(host, STUB_DEAD);
    host_lost(host);
    TRITONSERVER_Error *err = host_restart(host);
    if (!err)
        err = instance_initialize(host);
    if (!err)
        return NULL;
    host_lost(host);
    host->failed_ns = stub_now();
    return instance_not_back(host, err);
}

/* The process that completed the configuration becomes the first instance's. */
static TRITONSERVER_Error *instance_host(struct model *model, const char *name,
                                         struct host **ret_host)
{
    pthread_mutex_lock(&model->lock);
    struct host *spare = model->spare;
    model->spare = NULL;
    pthread_mutex_unlock(&model->lock);
    if (!spare)
        return host_new(model, name, ret_host);
    *ret_host = spare;
    return host_rename(spare, name);
}

const size_t instance_size = sizeof(struct instance);

bool bentry_uses_gpus(void *runtime)
{
    (void)runtime;
    return true;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    const char *name;
    struct host *host = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceName(handle, &name);
    if (!err)
        err = instance_host(model, name, &host);
    if (!err) {
        host->instance = handle;
        instance_lend(host);
        err = instance_initialize(host);
    }
    if (err)
        host_lost_and_free(host);
    else
        instance->host = host;
    return err;
}

void instance_fini(struct instance *instance)
{
    host_free(instance->host);
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    execute_requests(instance->host, requests, count);
}

/* -- execution in halves: the loop of a server that knows it waits for the stub -- */

static struct host *instance_of(TRITONBACKEND_ModelInstance *handle)
{
    void *instance = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle, &instance);
    if (!err)
        return ((struct instance *)instance)->host;
    TRITONSERVER_ErrorDelete(err);
    return NULL;
}

int nereid_instance_bell_v1(TRITONBACKEND_ModelInstance *handle)
{
    const struct host *host = instance_of(handle);
    return host ? host->bell : -1;
}

bool nereid_instance_begin_v1(TRITONBACKEND_ModelInstance *handle, TRITONBACKEND_Request **requests,
                              uint32_t count)
{
    return execute_begin(instance_of(handle), requests, count);
}

enum nereid_progress nereid_instance_look_v1(TRITONBACKEND_ModelInstance *handle)
{
    return execute_look(instance_of(handle));
}

void nereid_instance_finish_v1(TRITONBACKEND_ModelInstance *handle)
{
    execute_finish(instance_of(handle));
}
