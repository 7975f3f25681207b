/* TRITONBACKEND_BackendAttribute functions, called by a backend's
 * TRITONBACKEND_GetBackendAttribute. */
#include "plugin/handle.h"
#include "plugin/attribute.h"
#include "triton/core/tritonbackend.h"

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes, const TRITONSERVER_InstanceGroupKind kind,
    const uint64_t count, const uint64_t *device_ids, const uint64_t id_count)
{
    if (!attribute_is(backend_attributes))
        return handle_invalid("TRITONBACKEND_BackendAttribute");
    return handle_error(attribute_add_wish(attribute_check(backend_attributes), (int)kind, count,
                                           device_ids, id_count));
}

TRITONSERVER_Error *TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled)
{
    if (!attribute_is(backend_attributes))
        return handle_invalid("TRITONBACKEND_BackendAttribute");
    attribute_check(backend_attributes)->parallel_instances = enabled;
    return NULL;
}
