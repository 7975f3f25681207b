#include "plugin/instance.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "infer/request.h"
#include "os/process/cpu_bind.h"
#include "plugin/backend.h"
#include "plugin/host_policy.h"
#include "plugin/message.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"

#define INSTANCE_MAGIC 0x494e5354u

static _Thread_local struct plugin_instance *current;

/* What the thread does with an instance; returns what it did before. */
static struct log_work plugin_instance_work(const struct plugin_instance *i, const char *what)
{
    return log_work_set((struct log_work){what, i->model->title});
}

static struct message *policy_message(const struct host_policy *p)
{
    size_t len;
    char *json = host_policy_json(p, &len);
    return message_new(json, len);
}

static Inference__ModelInstanceGroup *copy_group(const Inference__ModelInstanceGroup *group)
{
    size_t len = inference__model_instance_group__get_packed_size(group);
    uint8_t *bytes = mem_alloc(len + 1);
    inference__model_instance_group__pack(group, bytes);
    Inference__ModelInstanceGroup *copy = inference__model_instance_group__unpack(NULL, len, bytes);
    CHECK(copy);
    mem_free(bytes);
    return copy;
}

static struct err *plugin_instance_initialize(struct plugin_instance *i)
{
    struct plugin_backend *b = i->model->backend;
    struct cpu_bind *was;
    struct err *e = host_policy_enter(i->policy, &was);
    i->begun = !e;
    if (e || !b->entries.instance_initialize) {
        cpu_bind_restore(was);
        return e;
    }
    struct log_work outer = plugin_instance_work(i, "loading");
    e = (struct err *)b->entries.instance_initialize((TRITONBACKEND_ModelInstance *)i);
    log_work_set(outer);
    cpu_bind_restore(was);
    if (e)
        backend_say_failed(b, i->model->name, i->name, "ModelInstanceInitialize", e);
    return e;
}

static bool may_run_inline(struct plugin_instance *i)
{
    const struct plugin_backend *b = i->model->backend;
    if (b->entries.bell)
        i->bell = b->entries.bell((TRITONBACKEND_ModelInstance *)i);
    if (i->bell >= 0)
        return true;
    if (!b->inline_ok || !b->entries.instance_inline)
        return b->inline_ok;
    return b->entries.instance_inline((TRITONBACKEND_ModelInstance *)i);
}

struct err *instance_new(struct plugin_model *model, struct stats *stats, const char *name,
                         TRITONSERVER_InstanceGroupKind kind, int32_t device,
                         const struct Inference__ModelInstanceGroup *group,
                         const struct host_policies *policies, struct plugin_instance **ret)
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
        .bell = -1,
        .group = copy_group(group),
        .policy = host_policy_new(policies, kind, device, group),
    };
    i->host_policy = policy_message(i->policy);
    usage_init(&i->usage);
    struct err *e = plugin_instance_initialize(i);
    if (e) {
        instance_free(i);
        return e;
    }
    i->inline_ok = may_run_inline(i);
    *ret = i;
    return NULL;
}

/* Binding worked when the instance was made. If it fails now, the system has changed, and that
 * is no reason not to execute. */
void instance_bind(const struct plugin_instance *i)
{
    struct err *e = host_policy_bind(i->policy);
    if (e)
        LOG_WARN("instance '%s': %s", i->name, err_message(e));
    err_free(e);
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

struct plugin_instance *instance_current(void)
{
    return current;
}

/* Makes two copies of the handles: the backend may write to the first, the second is compared
 * afterwards. */
static TRITONBACKEND_Request **make_handles(struct plugin_instance *i, struct request **requests,
                                            size_t count)
{
    if (count > i->handle_count) {
        i->handles = mem_realloc(i->handles, 2 * count * sizeof(*i->handles));
        i->handle_count = count;
    }
    for (size_t k = 0; k < count; k++)
        i->handles[count + k] = i->handles[k] = request_handle(requests[k]);
    return (TRITONBACKEND_Request **)i->handles;
}

static void instance_hand_out(struct request **requests, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        requests[k]->lent = true;
        request_with_backend(requests[k]);
    }
}

/* A call was refused: the caller owns the requests again, except those that the backend released,
 * which are NULL. */
static void plugin_instance_take_back(struct plugin_instance *i, struct request **requests,
                                      size_t count, const char *what)
{
    size_t gone = 0;
    for (size_t k = 0; k < count; k++) {
        requests[k] = request_take(i->handles[count + k]);
        if (requests[k])
            requests[k]->lent = false;
        else
            gone++;
    }
    if (gone)
        LOG_ERROR("backend '%s' of model '%s', instance '%s' broke a rule: "
                  "%s and had released %zu of %zu requests; then all of them stay with the server",
                  i->model->backend->name, i->model->name, i->name, what, gone, count);
}

static struct err *execute_library(struct plugin_instance *i, struct request **requests,
                                   size_t count)
{
    struct err *e = (struct err *)i->model->backend->entries.execute(
        (TRITONBACKEND_ModelInstance *)i, make_handles(i, requests, count), (uint32_t)count);
    if (e)
        plugin_instance_take_back(i, requests, count,
                                  "TRITONBACKEND_ModelInstanceExecute returned an error");
    return e;
}

void instance_note_again(const void *handle, const struct request *r)
{
    struct plugin_instance *i = current;
    if (!i)
        return; /* the call comes from a thread of the backend's own */
    i->again = mem_realloc(i->again, (i->again_count + 1) * sizeof(*i->again));
    i->again[i->again_count++] = (struct instance_again){.handle = handle,
                                                         .start = r->times.start,
                                                         .queue_start = r->times.queue_start,
                                                         .rows = r->batch_size,
                                                         .gap = r->gap};
}

const struct instance_again *instance_again(const struct plugin_instance *i, const void *handle)
{
    for (size_t k = 0; i == current && k < i->again_count; k++)
        if (i->again[k].handle == handle)
            return &i->again[k];
    return NULL;
}

/* What a thread does while it is in no call of an instance, or in the one around this. */
struct visit {
    struct plugin_instance *instance;
    struct log_work work;
};

static struct visit plugin_instance_enter(struct plugin_instance *i)
{
    struct visit outer = {current, plugin_instance_work(i, "executing")};
    current = i;
    return outer;
}

static void plugin_instance_exit(struct plugin_instance *i, struct visit outer)
{
    current = outer.instance;
    i->again_count = 0;
    log_work_set(outer.work);
}

bool instance_begin(struct plugin_instance *i, struct request **requests, size_t *count)
{
    size_t kept = 0;
    instance_hand_out(requests, *count);
    struct log_work outer = plugin_instance_work(i, "executing");
    bool begun = i->model->backend->entries.begin(
        (TRITONBACKEND_ModelInstance *)i, make_handles(i, requests, *count), (uint32_t)*count);
    log_work_set(outer);
    if (begun)
        return true;
    plugin_instance_take_back(i, requests, *count, "nereid_instance_begin_v1 returned false");
    for (size_t k = 0; k < *count; k++)
        if (requests[k])
            requests[kept++] = requests[k];
    *count = kept;
    return false;
}

enum nereid_progress instance_look(struct plugin_instance *i)
{
    struct visit outer = plugin_instance_enter(i);
    enum nereid_progress progress =
        i->model->backend->entries.look((TRITONBACKEND_ModelInstance *)i);
    plugin_instance_exit(i, outer);
    return progress;
}

void instance_finish(struct plugin_instance *i)
{
    struct visit outer = plugin_instance_enter(i);
    i->model->backend->entries.finish((TRITONBACKEND_ModelInstance *)i);
    plugin_instance_exit(i, outer);
}

struct err *instance_execute(struct plugin_instance *i, struct request **requests, size_t count)
{
    struct visit outer = plugin_instance_enter(i);
    instance_hand_out(requests, count);
    struct err *e = i->model->backend->entries.run
                        ? i->model->backend->entries.run(i, requests, count)
                        : execute_library(i, requests, count);
    plugin_instance_exit(i, outer);
    return e;
}

void instance_free(struct plugin_instance *i)
{
    if (!i)
        return;
    if (i->begun && i->model->backend->entries.instance_finalize) {
        struct log_work outer = plugin_instance_work(i, "finalizing");
        struct err *e = (struct err *)i->model->backend->entries.instance_finalize(
            (TRITONBACKEND_ModelInstance *)i);
        log_work_set(outer);
        if (e)
            backend_say_failed(i->model->backend, i->model->name, i->name, "ModelInstanceFinalize",
                               e);
        err_free(e);
    }
    message_free(i->host_policy);
    host_policy_free(i->policy);
    mem_free(i->handles);
    mem_free(i->again);
    inference__model_instance_group__free_unpacked(i->group, NULL);
    usage_fini(&i->usage);
    mem_free(i->name);
    i->magic = 0;
    mem_free(i);
}
