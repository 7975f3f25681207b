#include "net/grpc_method.h"

#include "net/grpc_control.h"
#include "net/grpc_infer.h"
#include "net/grpc_repository.h"

#include <string.h>

#define INFERENCE "/inference.GRPCInferenceService/"
#define HEALTH    "/grpc.health.v1.Health/"

/* By use: the first are looked up fastest. */
static const struct grpc_method methods[] = {
    {.path = INFERENCE "ModelInfer", .tensors = true, .message = grpc_infer_unary},
    {
        .path = INFERENCE "ModelStreamInfer",
        .streams = true,
        .tensors = true,
        .message = grpc_infer_streamed,
        .half_closed = grpc_infer_stream_end,
    },
    {.path = INFERENCE "ServerLive", .message = grpc_control_server_live},
    {.path = INFERENCE "ServerReady", .message = grpc_control_server_ready},
    {.path = INFERENCE "ModelReady", .message = grpc_control_model_ready},
    {.path = HEALTH "Check", .message = grpc_control_health_check},
    {.path = INFERENCE "ServerMetadata", .message = grpc_control_server_metadata},
    {.path = INFERENCE "ModelMetadata", .message = grpc_control_model_metadata},
    {.path = INFERENCE "ModelConfig", .message = grpc_control_model_config},
    {.path = INFERENCE "ModelStatistics", .message = grpc_control_model_statistics},
    {.path = INFERENCE "RepositoryIndex", .message = grpc_repository_index},
    {.path = INFERENCE "RepositoryModelLoad", .message = grpc_repository_load},
    {.path = INFERENCE "RepositoryModelUnload", .message = grpc_repository_unload},
    {.path = INFERENCE "SystemSharedMemoryStatus", .message = grpc_control_unsupported},
    {.path = INFERENCE "SystemSharedMemoryRegister", .message = grpc_control_unsupported},
    {.path = INFERENCE "SystemSharedMemoryUnregister", .message = grpc_control_unsupported},
    {.path = INFERENCE "CudaSharedMemoryStatus", .message = grpc_control_unsupported},
    {.path = INFERENCE "CudaSharedMemoryRegister", .message = grpc_control_unsupported},
    {.path = INFERENCE "CudaSharedMemoryUnregister", .message = grpc_control_unsupported},
    {.path = INFERENCE "TraceSetting", .message = grpc_control_unsupported},
    {.path = INFERENCE "LogSettings", .message = grpc_control_unsupported},
    {.path = HEALTH "Watch", .message = grpc_control_unsupported},
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

#define METHODS (sizeof(methods) / sizeof(*methods))

/* Only ModelInfer is about one model: each request of a stream may be for another. Called before the workers serve. */
const struct front_metrics_kind *grpc_method_metrics(void)
{
    static struct front_metrics_route routes[METHODS + 1];
    static struct front_metrics_kind kind = {
        .protocol = "grpc", .grpc = true, .routes = routes, .route_count = METHODS + 1};
    for (size_t i = 0; i <= METHODS; i++)
        routes[i] = (struct front_metrics_route){
            .name = i ? strrchr(methods[i - 1].path, '/') + 1 : "other", .model_slot = -1};
    routes[grpc_method_route(&methods[0])].model_slot = 0;
    return &kind;
}

unsigned grpc_method_route(const struct grpc_method *m)
{
    return m ? (unsigned)(m - methods) + 1 : 0;
}
