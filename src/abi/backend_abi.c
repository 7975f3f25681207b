/* TRITONBACKEND_ functions about backends, models and instances. */
#include "plugin/handle.h"
#include "infer/request.h"
#include "infer/stats.h"
#include "infer/trace.h"
#include "model/config.h"
#include "plugin/backend.h"
#include "plugin/instance.h"
#include "plugin/memory_manager.h"
#include "plugin/message.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "triton/core/tritonbackend.h"

#include <inttypes.h>

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONBACKEND_API_VERSION_MAJOR;
    *minor = TRITONBACKEND_API_VERSION_MINOR;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendName(TRITONBACKEND_Backend *backend, const char **name)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    *name = backend_check(backend)->name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend,
                                                TRITONSERVER_Message **backend_config)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    *backend_config = (TRITONSERVER_Message *)backend_check(backend)->config;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend *backend,
                                                         TRITONBACKEND_ExecutionPolicy *policy)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    *policy = backend_check(backend)->execution_policy;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *backend,
                                                            TRITONBACKEND_ExecutionPolicy policy)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    backend_check(backend)->execution_policy = policy;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend *backend,
                                                   TRITONBACKEND_ArtifactType *artifact_type,
                                                   const char **location)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *location = backend_check(backend)->dir;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend *backend,
                                                       TRITONBACKEND_MemoryManager **manager)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    *manager = memory_manager_handle();
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager *manager,
                                                        void **buffer,
                                                        const TRITONSERVER_MemoryType memory_type,
                                                        const int64_t memory_type_id,
                                                        const uint64_t byte_size)
{
    if (!memory_manager_is(manager))
        return handle_invalid("TRITONBACKEND_MemoryManager");
    return handle_error(
        memory_manager_alloc((enum buf_memory)memory_type, memory_type_id, byte_size, buffer));
}

TRITONSERVER_Error *TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager *manager,
                                                    void *buffer,
                                                    const TRITONSERVER_MemoryType memory_type,
                                                    const int64_t memory_type_id)
{
    if (!memory_manager_is(manager))
        return handle_invalid("TRITONBACKEND_MemoryManager");
    return handle_error(memory_manager_free(buffer, (enum buf_memory)memory_type, memory_type_id));
}

TRITONSERVER_Error *TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    *state = backend_check(backend)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state)
{
    if (!backend_is(backend))
        return handle_invalid("TRITONBACKEND_Backend");
    backend_check(backend)->state = state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **name)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    *name = model_check(model)->name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *version)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    *version = (uint64_t)model_check(model)->version;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model,
                                                  TRITONBACKEND_ArtifactType *artifact_type,
                                                  const char **location)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    *artifact_type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *location = model_check(model)->dir;
    return NULL;
}

static struct err *check_config_version(const struct plugin_model *m, uint32_t config_version)
{
    if (config_version == 1)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "model '%s': there is version 1 of the configuration only, not %" PRIu32,
                   m->name, config_version);
}

TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model,
                                              const uint32_t config_version,
                                              TRITONSERVER_Message **model_config)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    struct plugin_model *m = model_check(model);
    struct err *e = check_config_version(m, config_version);
    if (e)
        return handle_error(e);
    size_t len;
    char *json = model_print_config(m, &len);
    *model_config = (TRITONSERVER_Message *)message_new(json, len);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model,
                                                          bool *auto_complete_config)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    *auto_complete_config = model_check(model)->auto_complete;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model,
                                                 const uint32_t config_version,
                                                 TRITONSERVER_Message *model_config)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    struct plugin_model *m = model_check(model);
    const struct message *json = message_of(model_config);
    if (!json)
        return handle_invalid("TRITONSERVER_Message");
    struct Inference__ModelConfig *proto;
    struct err *e = check_config_version(m, config_version);
    if (!e)
        e = config_parse_json(json->json, json->len, &proto);
    if (!e)
        e = model_set_config(m, proto);
    return handle_error(e);
}

TRITONSERVER_Error *TRITONBACKEND_ModelServer(TRITONBACKEND_Model *model,
                                              TRITONSERVER_Server **server)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    *server = model_check(model)->server;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model,
                                               TRITONBACKEND_Backend **backend)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    *backend = (TRITONBACKEND_Backend *)model_check(model)->backend;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **state)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    *state = model_check(model)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state)
{
    if (!model_is(model))
        return handle_invalid("TRITONBACKEND_Model");
    model_check(model)->state = state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance,
                                                    const char **name)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *name = instance_check(instance)->name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                                    TRITONSERVER_InstanceGroupKind *kind)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *kind = instance_check(instance)->kind;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance,
                                                        int32_t *device_id)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *device_id = instance_check(instance)->device;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *instance,
                                                          TRITONSERVER_Message **host_policy)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *host_policy = (TRITONSERVER_Message *)instance_check(instance)->host_policy;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *instance,
                                                         bool *is_passive)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *is_passive = instance_check(instance)->passive;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *instance,
                                                            uint32_t *count)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *count = (uint32_t)instance_check(instance)->group->n_profile;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *instance,
                                                           const uint32_t index,
                                                           const char **profile_name)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    const struct plugin_instance *i = instance_check(instance);
    if (index >= i->group->n_profile)
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "out of bounds index %" PRIu32
                                    ": instance '%s' is configured with %zu profiles",
                                    index, i->name, i->group->n_profile));
    *profile_name = i->group->profile[index];
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(TRITONBACKEND_ModelInstance *instance,
                                                uint32_t *count)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *count = (uint32_t)instance_check(instance)->group->n_secondary_devices;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(TRITONBACKEND_ModelInstance *instance,
                                                     uint32_t index, const char **kind, int64_t *id)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    const Inference__ModelInstanceGroup *group = instance_check(instance)->group;
    if (index >= group->n_secondary_devices)
        return handle_bounds("secondary devices", index, group->n_secondary_devices);
    *kind = "KIND_NVDLA"; /* the only kind that exists */
    *id = group->secondary_devices[index]->device_id;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                                     TRITONBACKEND_Model **model)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *model = (TRITONBACKEND_Model *)instance_check(instance)->model;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance,
                                                     void **state)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    *state = instance_check(instance)->state;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance,
                                                        void *state)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    instance_check(instance)->state = state;
    return NULL;
}

static struct stats_compute compute_times(uint64_t exec_start_ns, uint64_t compute_start_ns,
                                          uint64_t compute_end_ns, uint64_t exec_end_ns)
{
    return (struct stats_compute){.start = exec_start_ns,
                                  .input_end = compute_start_ns,
                                  .output_start = compute_end_ns,
                                  .end = exec_end_ns};
}

static void backend_abi_trace_compute(struct trace *t, const struct stats_compute *c)
{
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_START, c->start);
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_INPUT_END, c->input_end);
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_OUTPUT_START, c->output_start);
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_END, c->end);
}

/* Handles a report that comes after the request was rescheduled. The reference's backends do so,
 * and it counts. Only statistics get it: the request's trace and its ensemble do not. */
static void report_again(const struct plugin_instance *i, const struct instance_again *a,
                         bool success, const struct stats_compute *c)
{
    if (a->gap || i->reports)
        return;
    if (success)
        stats_success(i->stats, a->start, a->queue_start, c, clock_now_ns(), a->rows);
    else
        stats_failure(i->stats, STATS_BACKEND, a->start, clock_now_ns());
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    struct plugin_instance *i = instance_check(instance);
    struct stats_compute c =
        compute_times(exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns);
    const struct request *r = request_from(request);
    const struct instance_again *again = r ? NULL : instance_again(i, request);
    if (again)
        report_again(i, again, success, &c);
    if (!r)
        return again ? NULL : HANDLE_BROKEN(TOKEN_REQUEST, request);
    struct stats *s = i->stats;
    time_ns now = clock_now_ns();
    if (r->gap)
        return NULL;
    if (i->reports) {
        i->reports->request(i, r, success, &c);
        return NULL;
    }
    if (success)
        stats_success(s, r->times.start, r->times.queue_start, &c, now, r->batch_size);
    else
        stats_failure(s, STATS_BACKEND, r->times.start, now);
    if (r->parent && success)
        request_spend(r, &c);
    if (r->trace)
        backend_abi_trace_compute(r->trace, &c);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns)
{
    if (!instance_is(instance))
        return handle_invalid("TRITONBACKEND_ModelInstance");
    struct stats_compute c =
        compute_times(exec_start_ns, compute_start_ns, compute_end_ns, exec_end_ns);
    struct plugin_instance *i = instance_check(instance);
    if (batch_size > INT32_MAX)
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "model '%s', instance '%s': a batch of %" PRIu64
                                    " cannot be: max_batch_size is at most %" PRId32,
                                    i->model->name, i->name, batch_size, INT32_MAX));
    if (i->reports)
        i->reports->batch(i, batch_size, &c);
    else
        stats_batch(i->stats, (uint32_t)batch_size, &c, clock_wall_at(stats_ended(i->stats, &c)));
    return NULL;
}
