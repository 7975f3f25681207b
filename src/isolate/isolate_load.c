#include "isolate/isolate_load.h"

#include "base/mem.h"
#include "model/config.h"
#include "plugin/host_policy.h"
#include "plugin/instance.h"
#include "isolate/isolate_life.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_session.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"

static struct err *give(struct isolate_session *s, struct isolate_lane *lane,
                        struct isolate_reply *reply, bool *ret_lost)
{
    *ret_lost = !lane || !isolate_session_order(s, lane, reply);
    struct err *e = reply->err;
    reply->err = NULL;
    return e;
}

struct err *isolate_load_backend(struct isolate *iso, struct isolate_session *s,
                                 struct isolate_reply *reply, bool *ret_lost)
{
    struct strbuf *sb = isolate_session_begin(&s->setup, ORDER_HELLO);
    strbuf_append(sb, iso->hello.data, iso->hello.len);
    return give(s, &s->setup, reply, ret_lost);
}

struct err *isolate_load_model(struct isolate *iso, struct isolate_session *s,
                               struct isolate_reply *reply, bool *ret_lost)
{
    struct strbuf *sb = isolate_session_begin(&s->setup, ORDER_MODEL);
    isolate_wire_put(sb, iso->auto_complete);
    isolate_wire_put_text(sb, iso->written);
    return give(s, &s->setup, reply, ret_lost);
}

struct err *isolate_load_config(struct isolate *iso, struct isolate_session *s, bool *ret_lost)
{
    struct isolate_reply reply = {0};
    *ret_lost = false;
    if (s->configured)
        return NULL;
    s->configured = true;
    char *json = model_print_config(iso->plugin_model, NULL);
    isolate_wire_put_text(isolate_session_begin(&s->setup, ORDER_CONFIG), json);
    mem_free(json);
    return give(s, &s->setup, &reply, ret_lost);
}

static void put_instance(struct strbuf *sb, const struct plugin_instance *i)
{
    isolate_wire_put_text(sb, i->name);
    isolate_wire_put(sb, i->kind);
    isolate_wire_put(sb, (uint64_t)i->device);
    size_t len = inference__model_instance_group__get_packed_size(i->group);
    uint8_t *packed = mem_alloc(len + 1);
    inference__model_instance_group__pack(i->group, packed);
    isolate_wire_put_bytes(sb, packed, len);
    mem_free(packed);
    isolate_wire_put_text(sb, host_policy_name(i->policy));
    isolate_wire_put_text(sb, host_policy_value(i->policy, "cpu-cores"));
    isolate_wire_put_text(sb, host_policy_value(i->policy, "numa-node"));
}

struct err *isolate_load_instance(struct isolate *iso, struct isolate_session *s,
                                  struct isolate_instance *inst, bool *ret_lost)
{
    isolate_life_setup_begin(iso);
    struct err *e = isolate_session_add_lane(s, &inst->next_lane);
    isolate_life_setup_end(iso);
    *ret_lost = false;
    if (e)
        return e;
    struct isolate_reply reply = {.usage = &inst->instance->usage};
    if (inst->next_lane)
        put_instance(isolate_session_begin(inst->next_lane, ORDER_INSTANCE), inst->instance);
    return give(s, inst->next_lane, &reply, ret_lost);
}

struct err *isolate_load_all(struct isolate *iso, struct isolate_session *s, bool *ret_lost)
{
    struct attribute attributes;
    char *config = NULL;
    int policy;
    attribute_init(&attributes);
    struct isolate_reply hello = {.attributes = &attributes, .policy = &policy};
    struct isolate_reply model = {.config = &config, .usage = &iso->plugin_model->usage};
    isolate_life_setup_begin(iso);
    struct err *e = isolate_load_backend(iso, s, &hello, ret_lost);
    if (!e && !*ret_lost)
        e = isolate_load_model(iso, s, &model, ret_lost);
    if (!e && !*ret_lost)
        e = isolate_load_config(iso, s, ret_lost);
    isolate_life_setup_end(iso);
    mem_free(config);
    mutex_lock(&iso->lock);
    LIST_EACH (node, &iso->instances) {
        if (e || *ret_lost)
            break;
        /* The list may be used without the lock: threads that add or remove instances wait until
         * this one is done. */
        mutex_unlock(&iso->lock);
        e = isolate_load_instance(iso, s, LIST_ITEM(node, struct isolate_instance, node), ret_lost);
        mutex_lock(&iso->lock);
    }
    mutex_unlock(&iso->lock);
    return e;
}
