#include "repo/resize.h"

#include "base/mem.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_groups.h"
#include "plugin/backend.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "repo/load/load.h"
#include "serve/version.h"

typedef Inference__ModelConfig config_proto;

/* Swaps the instance groups and the version policy of two messages. */
static void resize_exchange(config_proto *a, config_proto *b)
{
    config_proto was = *a;
    a->n_instance_group = b->n_instance_group;
    a->instance_group = b->instance_group;
    a->version_policy = b->version_policy;
    b->n_instance_group = was.n_instance_group;
    b->instance_group = was.instance_group;
    b->version_policy = was.version_policy;
}

static struct err *resize_complete(config_proto **proto, const struct serve_version *v,
                                   struct model_config **ret)
{
    struct err *e = NULL;
    config_fill_defaults(*proto, v->name);
    if (v->model) { /* an ensemble has no instances */
        struct config_groups_machine machine;
        load_machine(*proto, &v->model->backend->attributes, &machine);
        config_groups_fill(*proto, &machine);
        e = config_groups_check(*proto, &machine);
    }
    if (!e)
        e = config_check_model(*proto, v->name, CONFIG_CHECK_FULL);
    if (!e)
        e = config_compile(proto, ret);
    return e;
}

struct err *resize_prepare(struct serve_version *v, const config_proto *written,
                           struct instances_draft **ret)
{
    config_proto *proto = config_copy_proto(v->config->proto);
    config_proto *other = config_copy_proto(written);
    resize_exchange(proto, other);
    config_free_proto(other);
    struct model_config *config = NULL;
    struct err *e = resize_complete(&proto, v, &config);
    config_free_proto(proto);
    if (e)
        return e;
    e = instances_prepare(v, config, ret);
    config_unref(config);
    return e;
}
