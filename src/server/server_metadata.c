#include "server/server_metadata.h"

#include "base/build_version.h"
#include "base/mem.h"
#include "server/server.h"

Inference__ServerMetadataResponse *server_metadata_new(const struct server *s)
{
    /* In the reference's order, without the shared memory and trace extensions, which this
     * server does not support. */
    static const char *const extensions[] = {
        "classification",
        "sequence",
        "sequence(string_id)",
        "model_repository",
        "model_repository(unload_dependents)",
        "schedule_policy",
        "model_configuration",
        "binary_tensor_data",
        "parameters",
        "statistics",
        "logging",
    };
    size_t count = sizeof(extensions) / sizeof(extensions[0]);
    Inference__ServerMetadataResponse *m = mem_alloc(sizeof(*m));
    inference__server_metadata_response__init(m);
    m->name = mem_strdup(s->options.server_id);
    m->version = mem_strdup(BUILD_VERSION);
    m->extensions = mem_alloc(count * sizeof(char *));
    m->n_extensions = count;
    for (size_t i = 0; i < count; i++)
        m->extensions[i] = mem_strdup(extensions[i]);
    return m;
}
