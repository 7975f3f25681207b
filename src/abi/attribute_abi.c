/* TRITONBACKEND_BackendAttribute functions, called by a backend's
 * TRITONBACKEND_GetBackendAttribute. */
#include "plugin/handle.h"
#include "plugin/attribute.h"
#include "proto/model_config.pb-c.h"
#include "triton/core/tritonbackend.h"

/* The kind in the words of configurations, which number them otherwise. */
static int configured_kind(TRITONSERVER_InstanceGroupKind kind)
{
    switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
        return INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_CPU;
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
        return INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU;
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
        return INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_MODEL;
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
        break;
    }
    return INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_AUTO;
}

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes, const TRITONSERVER_InstanceGroupKind kind,
    const uint64_t count, const uint64_t *device_ids, const uint64_t id_count)
{
    if (!attribute_is(backend_attributes))
        return handle_invalid("TRITONBACKEND_BackendAttribute");
    if (!device_ids && id_count)
        return HANDLE_NULL("device_ids");
    return handle_error(attribute_add_wish(attribute_check(backend_attributes),
                                           configured_kind(kind), count, device_ids, id_count));
}

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled)
{
    if (!attribute_is(backend_attributes))
        return handle_invalid("TRITONBACKEND_BackendAttribute");
    attribute_check(backend_attributes)->parallel_instances = enabled;
    return NULL;
}
