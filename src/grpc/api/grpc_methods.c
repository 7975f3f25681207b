#include "grpc/api/grpc_methods.h"

#include "grpc/api/grpc_control.h"
#include "grpc/api/grpc_infer.h"
#include "grpc/api/grpc_logging.h"
#include "grpc/api/grpc_reflection.h"
#include "grpc/api/grpc_regions.h"
#include "grpc/api/grpc_repository.h"
#include "grpc/api/grpc_trace.h"
#include "metrics/front_metrics.h"

#include <string.h>

#define INFERENCE "/inference.GRPCInferenceService/"
#define HEALTH    "/grpc.health.v1.Health/"
#define REFLECTED "ServerReflection/ServerReflectionInfo"

/* The first two methods are requests for models. */
#define MODEL_SLOTS 2u

static const struct grpc_method methods[] = {
    {.path = INFERENCE "ModelInfer",
     .category = OPTIONS_CATEGORY_INFERENCE,
     .tensors = true,
     .large = true,
     .message = grpc_infer_unary},
    {
        .path = INFERENCE "ModelStreamInfer",
        .category = OPTIONS_CATEGORY_INFERENCE,
        .streams = true,
        .tensors = true,
        .large = true,
        .message = grpc_infer_streamed,
    },
    {.path = INFERENCE "ServerLive",
     .category = OPTIONS_CATEGORY_HEALTH,
     .end = GRPC_METHOD_EXITING,
     .message = grpc_control_server_live},
    {.path = INFERENCE "ServerReady",
     .category = OPTIONS_CATEGORY_HEALTH,
     .end = GRPC_METHOD_EXITING,
     .message = grpc_control_server_ready},
    {.path = INFERENCE "ModelReady",
     .category = OPTIONS_CATEGORY_HEALTH,
     .message = grpc_control_model_ready},
    {.path = HEALTH "Check",
     .category = OPTIONS_CATEGORY_HEALTH,
     .end = GRPC_METHOD_EXITING,
     .message = grpc_control_health_check},
    {.path = INFERENCE "ServerMetadata",
     .category = OPTIONS_CATEGORY_METADATA,
     .end = GRPC_METHOD_SERVED,
     .message = grpc_control_server_metadata},
    {.path = INFERENCE "ModelMetadata",
     .category = OPTIONS_CATEGORY_METADATA,
     .message = grpc_control_model_metadata},
    {.path = INFERENCE "ModelConfig",
     .category = OPTIONS_CATEGORY_MODEL_CONFIG,
     .message = grpc_control_model_config},
    {.path = INFERENCE "ModelStatistics",
     .category = OPTIONS_CATEGORY_STATISTICS,
     .message = grpc_control_model_statistics},
    {.path = INFERENCE "RepositoryIndex",
     .category = OPTIONS_CATEGORY_MODEL_REPOSITORY,
     .message = grpc_repository_index},
    {.path = INFERENCE "RepositoryModelLoad",
     .category = OPTIONS_CATEGORY_MODEL_REPOSITORY,
     .large = true,
     .message = grpc_repository_load},
    {.path = INFERENCE "RepositoryModelUnload",
     .category = OPTIONS_CATEGORY_MODEL_REPOSITORY,
     .message = grpc_repository_unload},
    {.path = INFERENCE "SystemSharedMemoryStatus",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_regions_status},
    {.path = INFERENCE "SystemSharedMemoryRegister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_regions_register},
    {.path = INFERENCE "SystemSharedMemoryUnregister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_regions_unregister},
    {.path = INFERENCE "CudaSharedMemoryStatus",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_regions_cuda_status},
    {.path = INFERENCE "CudaSharedMemoryRegister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_regions_cuda_register},
    {.path = INFERENCE "CudaSharedMemoryUnregister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_regions_cuda_unregister},
    {.path = INFERENCE "TraceSetting",
     .category = OPTIONS_CATEGORY_TRACE,
     .message = grpc_trace_setting},
    {.path = INFERENCE "LogSettings",
     .category = OPTIONS_CATEGORY_LOGGING,
     .end = GRPC_METHOD_SERVED,
     .message = grpc_logging_settings},
    {.path = HEALTH "Watch",
     .category = OPTIONS_CATEGORY_HEALTH,
     .message = grpc_control_unsupported},
    {
        .path = "/grpc.reflection.v1." REFLECTED,
        .category = OPTIONS_CATEGORY_METADATA,
        .end = GRPC_METHOD_SERVED,
        .streams = true,
        .message = grpc_reflection_message,
    },
    {
        .path = "/grpc.reflection.v1alpha." REFLECTED,
        .category = OPTIONS_CATEGORY_METADATA,
        .end = GRPC_METHOD_SERVED,
        .streams = true,
        .message = grpc_reflection_message,
    },
};

#define METHODS (sizeof(methods) / sizeof(*methods))
#define ROUTES  (METHODS - 1) /* the last two methods share a route */

/* Each request of a stream may be for another model. Failed requests are counted for their
 * model; the call is counted without one. */
static const struct front_metrics_kind *grpc_methods_metrics(void)
{
    static struct front_metrics_route routes[ROUTES + 1] = {{"other", -1}};
    static const struct front_metrics_kind kind = {
        .protocol = "grpc", .grpc = true, .routes = routes, .route_count = ROUTES + 1};
    for (size_t i = 0; i < ROUTES; i++)
        routes[i + 1] = (struct front_metrics_route){.name = strrchr(methods[i].path, '/') + 1,
                                                     .model_slot = i < MODEL_SLOTS ? (int)i : -1};
    return &kind;
}

const struct grpc_service grpc_methods_service = {
    .methods = methods, .count = METHODS, .last_route = ROUTES, .metrics = grpc_methods_metrics};
