#include "plugin/model.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "plugin/backend.h"
#include "plugin/batch_strategy.h"
#include "plugin/offender.h"

#include <inttypes.h>

#define MODEL_MAGIC 0x4d4f444cu

char *model_title(const char *name, int64_t version)
{
    struct strbuf title = STRBUF_INIT;
    strbuf_printf(&title, "model '%s', version %" PRId64, name, version);
    return strbuf_take(&title);
}

struct plugin_model *model_new(struct plugin_backend *backend, const char *name, int64_t version,
                               const char *dir, struct Inference__ModelConfig *proto,
                               bool auto_complete, void *server)
{
    struct plugin_model *m = MEM_NEW(struct plugin_model);
    m->magic = MODEL_MAGIC;
    usage_init(&m->usage);
    mutex_init(&m->lock, MUTEX_RANK_LEAF);
    m->backend = backend;
    m->name = mem_strdup(name);
    m->version = version;
    m->title = model_title(name, version);
    m->dir = mem_strdup(dir);
    m->server = server;
    m->proto = proto;
    m->auto_complete = auto_complete;
    offender_enter(m);
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
    m->begun = true;
    if (m->backend->entries.model_initialize) {
        struct log_work was = log_work_set((struct log_work){"loading", m->title});
        struct err *e =
            (struct err *)m->backend->entries.model_initialize((TRITONBACKEND_Model *)m);
        log_work_set(was);
        if (e) {
            backend_say_failed(m->backend, m->name, NULL, "ModelInitialize", e);
            return e;
        }
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

char *model_print_config(struct plugin_model *m, size_t *ret_len)
{
    mutex_lock(&m->lock);
    struct model_config *published = m->published ? config_ref(m->published) : NULL;
    mutex_unlock(&m->lock);
    char *json = config_print_json(published ? published->proto : m->proto, ret_len);
    if (published)
        config_unref(published);
    return json;
}

void model_publish_config(struct plugin_model *m, struct model_config *published)
{
    CHECK(!m->proto);
    mutex_lock(&m->lock);
    struct model_config *was = m->published;
    m->published = config_ref(published);
    mutex_unlock(&m->lock);
    if (was)
        config_unref(was);
}

bool model_ready(const struct plugin_model *m)
{
    return !m || !m->backend->entries.ready || m->backend->entries.ready(m->backend);
}

void model_retire(const struct plugin_model *m)
{
    if (m && m->backend->entries.retire)
        m->backend->entries.retire(m->backend);
}

void model_free(struct plugin_model *m)
{
    if (!m)
        return;
    struct log_work was = log_work_set((struct log_work){"finalizing", m->title});
    batch_strategy_close(m->strategy);
    if (m->begun && m->backend->entries.model_finalize) {
        struct err *e = (struct err *)m->backend->entries.model_finalize((TRITONBACKEND_Model *)m);
        if (e)
            backend_say_failed(m->backend, m->name, NULL, "ModelFinalize", e);
        err_free(e);
    }
    offender_leave(m);
    if (m->backend->entries.leave)
        m->backend->entries.leave(m->backend);
    log_work_set(was);
    config_free_proto(m->proto);
    if (m->published)
        config_unref(m->published);
    mutex_fini(&m->lock);
    usage_fini(&m->usage);
    mem_free(m->name);
    mem_free(m->title);
    mem_free(m->dir);
    m->magic = 0;
    mem_free(m);
}
