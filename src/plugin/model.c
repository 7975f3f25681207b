#include "plugin/model.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/config.h"
#include "plugin/backend.h"

#include <inttypes.h>

#define MODEL_MAGIC 0x4d4f444cu

struct plugin_model *model_new(struct plugin_backend *backend, const char *name, int64_t version,
                               const char *dir, struct Inference__ModelConfig *proto,
                               bool auto_complete, void *server)
{
    struct plugin_model *m = MEM_NEW(struct plugin_model);
    m->magic = MODEL_MAGIC;
    usage_init(&m->usage);
    m->backend = backend;
    m->name = mem_strdup(name);
    m->version = version;
    m->dir = mem_strdup(dir);
    m->server = server;
    m->proto = proto;
    m->auto_complete = auto_complete;
    return m;
}

bool model_is(const void *handle)
{
    const struct plugin_model *o = handle;
    return o && o->magic == MODEL_MAGIC;
}

struct plugin_model *model_check(void *handle)
{
    struct plugin_model *m = handle;
    CHECK_MAGIC(m, MODEL_MAGIC);
    return m;
}

struct err *model_initialize(struct plugin_model *m)
{
    if (m->backend->entries.model_initialize) {
        struct err *e =
            (struct err *)m->backend->entries.model_initialize((TRITONBACKEND_Model *)m);
        if (e)
            return e;
    }
    m->initialized = true;
    return NULL;
}

struct err *model_set_config(struct plugin_model *m, struct Inference__ModelConfig *proto)
{
    if (m->initialized) {
        config_free_proto(proto);
        return err_new(
            STATUS_INVALID_ARG,
            "model '%s': its configuration can be set in TRITONBACKEND_ModelInitialize only",
            m->name);
    }
    config_free_proto(m->proto);
    m->proto = proto;
    return NULL;
}

const struct Inference__ModelConfig *model_config_now(const struct plugin_model *m)
{
    return m->published ? m->published : m->proto;
}

void model_close_config(struct plugin_model *m, const struct Inference__ModelConfig *published)
{
    CHECK(!m->proto);
    m->published = published;
}

void model_free(struct plugin_model *m)
{
    if (!m)
        return;
    if (m->initialized && m->backend->entries.model_finalize) {
        struct err *e = (struct err *)m->backend->entries.model_finalize((TRITONBACKEND_Model *)m);
        if (e)
            LOG_ERROR("finalizing model '%s' version %" PRId64 ": %s", m->name, m->version,
                      err_message(e));
        err_free(e);
    }
    config_free_proto(m->proto);
    usage_fini(&m->usage);
    mem_free(m->name);
    mem_free(m->dir);
    m->magic = 0;
    mem_free(m);
}
