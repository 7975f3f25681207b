#include "grpc/grpc_method.h"

#include <string.h>

const struct grpc_method *grpc_method_find(const struct grpc_service *service, const char *path,
                                           size_t len)
{
    for (size_t i = 0; i < service->count; i++) {
        const struct grpc_method *m = &service->methods[i];
        if (strlen(m->path) == len && memcmp(m->path, path, len) == 0)
            return m;
    }
    return NULL;
}

unsigned grpc_method_route(const struct grpc_service *service, const struct grpc_method *m)
{
    unsigned number = m ? (unsigned)(m - service->methods) + 1 : 0;
    return number < service->last_route ? number : service->last_route;
}
