#include "server/server_metadata.h"

#include "base/build_version.h"
#include "base/mem.h"
#include "server/server.h"

Inference__ServerMetadataResponse *server_metadata_new(const struct server *s)
{
    /* In the reference's order. NULL: shared memory, unless clients may register some. */
    bool shared = s->options->allow_client_shm;
    const char *const extensions[] = {
        "classification",
        "sequence",
        "sequence(string_id)",
        "model_repository",
        "model_repository(unload_dependents)",
        "schedule_policy",
        "model_configuration",
        shared ? "system_shared_memory" : NULL,
        shared ? "cuda_shared_memory" : NULL,
        "binary_tensor_data",
        "parameters",
        "statistics",
        "trace",
        "logging",
    };
    size_t count = sizeof(extensions) / sizeof(extensions[0]);
    Inference__ServerMetadataResponse *m = mem_alloc(sizeof(*m));
    inference__server_metadata_response__init(m);
    m->name = mem_strdup(s->options->server_id);
    m->version = mem_strdup(BUILD_VERSION);
    m->extensions = mem_alloc(count * sizeof(char *));
    for (size_t i = 0; i < count; i++)
        if (extensions[i])
            m->extensions[m->n_extensions++] = mem_strdup(extensions[i]);
    return m;
}
