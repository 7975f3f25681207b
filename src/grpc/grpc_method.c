#include "grpc/grpc_method.h"

#include "grpc/grpc_control.h"
#include "grpc/grpc_infer.h"
#include "grpc/grpc_logging.h"
#include "grpc/grpc_reflection.h"
#include "grpc/grpc_repository.h"

#include <string.h>

#define INFERENCE "/inference.GRPCInferenceService/"
#define HEALTH    "/grpc.health.v1.Health/"
#define REFLECTED "ServerReflection/ServerReflectionInfo"

/* By use: the first are looked up fastest. */
static const struct grpc_method methods[] = {
    {.path = INFERENCE "ModelInfer",
     .category = OPTIONS_CATEGORY_INFERENCE,
     .tensors = true,
     .message = grpc_infer_unary},
    {
        .path = INFERENCE "ModelStreamInfer",
        .category = OPTIONS_CATEGORY_INFERENCE,
        .streams = true,
        .tensors = true,
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
     .message = grpc_repository_load},
    {.path = INFERENCE "RepositoryModelUnload",
     .category = OPTIONS_CATEGORY_MODEL_REPOSITORY,
     .message = grpc_repository_unload},
    {.path = INFERENCE "SystemSharedMemoryStatus",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_control_unsupported},
    {.path = INFERENCE "SystemSharedMemoryRegister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_control_unsupported},
    {.path = INFERENCE "SystemSharedMemoryUnregister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_control_unsupported},
    {.path = INFERENCE "CudaSharedMemoryStatus",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_control_unsupported},
    {.path = INFERENCE "CudaSharedMemoryRegister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_control_unsupported},
    {.path = INFERENCE "CudaSharedMemoryUnregister",
     .category = OPTIONS_CATEGORY_SHARED_MEMORY,
     .message = grpc_control_unsupported},
    {.path = INFERENCE "TraceSetting",
     .category = OPTIONS_CATEGORY_TRACE,
     .message = grpc_control_unsupported},
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

const struct grpc_method *grpc_method_find(const char *path, size_t len)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
        const struct grpc_method *m = &methods[i];
        if (strlen(m->path) == len && memcmp(m->path, path, len) == 0)
            return m;
    }
    return NULL;
}

/* The last two are one route. */
#define METHODS (sizeof(methods) / sizeof(*methods) - 1)

/* Each request of a stream may be for another model: those that fail are counted by theirs, the
 * call without one. Called before the workers serve. */
const struct front_metrics_kind *grpc_method_metrics(void)
{
    static struct front_metrics_route routes[METHODS + 1];
    static struct front_metrics_kind kind = {
        .protocol = "grpc", .grpc = true, .routes = routes, .route_count = METHODS + 1};
    for (size_t i = 0; i <= METHODS; i++)
        routes[i] = (struct front_metrics_route){
            .name = i ? strrchr(methods[i - 1].path, '/') + 1 : "other", .model_slot = -1};
    routes[grpc_method_route(&methods[0])].model_slot = 0;
    routes[grpc_method_route(&methods[1])].model_slot = 1;
    return &kind;
}

unsigned grpc_method_route(const struct grpc_method *m)
{
    unsigned number = m ? (unsigned)(m - methods) + 1 : 0;
    return number <= METHODS ? number : (unsigned)METHODS;
}
