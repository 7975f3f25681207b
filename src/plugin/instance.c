#include "plugin/instance.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "plugin/backend.h"
#include "plugin/message.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"

#define INSTANCE_MAGIC 0x494e5354u

/* The policy of the host that an instance runs under, named after its device; without settings of the command line it is empty. */
static struct message *host_policy(TRITONSERVER_InstanceGroupKind kind, int32_t device)
{
    struct strbuf sb = STRBUF_INIT;
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        strbuf_printf(&sb, "{\"gpu_%d\":{}}", device);
    else
        strbuf_puts(&sb, kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL ? "{\"model\":{}}"
                                                                      : "{\"cpu\":{}}");
    size_t len = sb.len;
    return message_new(strbuf_take(&sb), len);
}

struct err *instance_new(struct plugin_model *model, struct stats *stats, const char *name,
                         TRITONSERVER_InstanceGroupKind kind, int32_t device,
                         const struct Inference__ModelInstanceGroup *group,
                         struct plugin_instance **ret)
{
    struct plugin_instance *i = MEM_NEW(struct plugin_instance);
    *i = (struct plugin_instance){
        .magic = INSTANCE_MAGIC,
        .model = model,
        .stats = stats,
        .name = mem_strdup(name),
        .kind = kind,
        .device = device,
        .passive = group->passive,
        .group = group,
        .host_policy = host_policy(kind, device),
    };
    usage_init(&i->usage);
    if (model->backend->entries.instance_initialize) {
        struct err *e = (struct err *)model->backend->entries.instance_initialize(
            (TRITONBACKEND_ModelInstance *)i);
        if (e) {
            instance_free(i);
            return e;
        }
    }
    i->initialized = true;
    *ret = i;
    return NULL;
}

bool instance_is(const void *handle)
{
    const struct plugin_instance *o = handle;
    return o && o->magic == INSTANCE_MAGIC;
}

struct plugin_instance *instance_check(void *handle)
{
    struct plugin_instance *i = handle;
    CHECK_MAGIC(i, INSTANCE_MAGIC);
    return i;
}

struct err *instance_execute(struct plugin_instance *i, struct request **requests, size_t count)
{
    return (struct err *)i->model->backend->entries.execute(
        (TRITONBACKEND_ModelInstance *)i, (TRITONBACKEND_Request **)(void *)requests,
        (uint32_t)count);
}

void instance_free(struct plugin_instance *i)
{
    if (!i)
        return;
    if (i->initialized && i->model->backend->entries.instance_finalize) {
        struct err *e = (struct err *)i->model->backend->entries.instance_finalize(
            (TRITONBACKEND_ModelInstance *)i);
        if (e)
            LOG_ERROR("finalizing instance '%s': %s", i->name, err_message(e));
        err_free(e);
    }
    message_free(i->host_policy);
    usage_fini(&i->usage);
    mem_free(i->name);
    i->magic = 0;
    mem_free(i);
}
