#include "isolate/isolate.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/gpu_memory.h"
#include "infer/request.h"
#include "model/config.h"
#include "os/files/beside.h"
#include "os/process/confine.h"
#include "isolate/isolate_config.h"
#include "isolate/isolate_flight.h"
#include "isolate/isolate_life.h"
#include "isolate/isolate_load.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_request.h"
#include "isolate/isolate_session.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ROWS       128u
#define PROGRAM_VARIABLE "NEREID_ISOLATION_PROGRAM"

static struct err *find_program(const char *name, char **ret)
{
    const char *given = getenv(PROGRAM_VARIABLE);
    *ret = given && *given ? mem_strdup(given) : beside_program("nereid");
    if (*ret)
        return NULL;
    return err_new(STATUS_INTERNAL,
                   "model '%s': the program 'nereid', which isolated models run in, is "
                   "neither in "
                   "../bin of the library's directory nor beside it; " PROGRAM_VARIABLE
                   " can name it",
                   name);
}

/* True if a setting is for this backend. The process does not get settings of other backends. */
static bool is_for(const struct backend_setting *s, const struct Inference__ModelConfig *proto)
{
    return !*s->backend || strcmp(s->backend, proto->backend) == 0 ||
           /* the python backend may run it */
           (*proto->runtime && strcmp(s->backend, "python") == 0);
}

/* The process has pools of its own, of the sizes that the server's have. */
static void put_pools(struct strbuf *sb)
{
    isolate_wire_put(sb, gpu_memory_pinned_limit());
    for (int64_t id = 0; id < GPU_MAX; id++)
        isolate_wire_put(sb, gpu_memory_limit_of(id));
}

/* Writes what the process needs to know about the server. */
static void put_hello(struct isolate *iso, const struct backend_registry *r,
                      const struct Inference__ModelConfig *proto)
{
    struct strbuf *sb = &iso->hello;
    struct log_settings log = log_get();
    isolate_wire_put_text(sb, proto->backend);
    isolate_wire_put_text(sb, proto->runtime);
    isolate_wire_put_text(sb, iso->name);
    isolate_wire_put_text(sb, iso->model_dir);
    isolate_wire_put(sb, (uint64_t)iso->version);
    isolate_wire_put(sb, budget_limit());
    put_pools(sb);
    isolate_wire_put(sb, log.info);
    isolate_wire_put(sb, log.warning);
    isolate_wire_put(sb, log.error);
    isolate_wire_put(sb, log.verbose);
    isolate_wire_put_text(sb, r->directory);
    isolate_wire_put(sb, r->auto_complete);
    size_t count = 0;
    for (size_t i = 0; i < r->setting_count; i++)
        count += is_for(&r->settings[i], proto);
    isolate_wire_put(sb, count);
    for (size_t i = 0; i < r->setting_count; i++) {
        if (!is_for(&r->settings[i], proto))
            continue;
        isolate_wire_put_text(sb, r->settings[i].backend);
        isolate_wire_put_text(sb, r->settings[i].key);
        isolate_wire_put_text(sb, r->settings[i].value);
    }
}

static struct isolate *of_backend(struct plugin_backend *b)
{
    return LIST_ITEM(b, struct isolate, backend);
}

static struct isolate *isolate_of_model(TRITONBACKEND_Model *model)
{
    return of_backend(model_check(model)->backend);
}

static struct err *take_completed(struct isolate *iso, struct plugin_model *m, const char *json)
{
    struct Inference__ModelConfig *completed;
    struct err *e = config_parse_json(json, strlen(json), &completed);
    if (e)
        return e;
    struct Inference__ModelConfig *own = config_copy_proto(m->proto);
    e = isolate_config_take(own, completed);
    config_free_proto(completed);
    if (!e)
        return model_set_config(m, own);
    config_free_proto(own);
    return err_wrap(e, "%s", iso->model);
}

static TRITONSERVER_Error *initialize_model(TRITONBACKEND_Model *handle)
{
    struct plugin_model *m = model_check(handle);
    struct isolate *iso = isolate_of_model(handle);
    struct isolate_session *s;
    iso->plugin_model = m;
    iso->auto_complete = m->auto_complete;
    iso->written = model_print_config(m, NULL);
    struct err *e = isolate_life_acquire(iso, NULL, &s, NULL);
    if (e)
        return (TRITONSERVER_Error *)e;
    char *config = NULL;
    bool lost;
    struct isolate_reply reply = {.config = &config, .usage = &m->usage};
    isolate_life_setup_begin(iso);
    e = isolate_load_model(iso, s, &reply, &lost);
    isolate_life_setup_end(iso);
    if (lost)
        e = isolate_life_ended(iso, s, "while it initialized the model");
    isolate_session_unref(s);
    if (!e && config)
        e = take_completed(iso, m, config);
    mem_free(config);
    return (TRITONSERVER_Error *)e;
}

/* Waits until no reload uses the list of instances, so that the list may change. Lock held. */
static void wait_for_reload(struct isolate *iso)
{
    time_ns until = clock_now_ns() + iso->settings.grace_ns;
    while (iso->reloading) {
        if (mutex_cond_wait_until(&iso->changed, &iso->lock, until))
            continue;
        until = TIME_NEVER;
        atomic_store(&iso->kill_at, 1);
        mutex_unlock(&iso->lock);
        isolate_life_look(iso);
        mutex_lock(&iso->lock);
    }
}

static struct err *load_instance(struct isolate *iso, struct isolate_instance *inst)
{
    struct isolate_session *s;
    struct err *e = isolate_life_acquire(iso, NULL, &s, NULL);
    if (e)
        return e;
    bool lost;
    isolate_life_setup_begin(iso);
    e = isolate_load_config(iso, s, &lost);
    isolate_life_setup_end(iso);
    if (!e && !lost) {
        s->stats = iso->stats;
        s->most_rows = iso->most_rows;
        e = isolate_load_instance(iso, s, inst, &lost);
    }
    if (lost)
        e = isolate_life_ended(iso, s, "while it initialized the instance");
    else if (e && inst->next_lane)
        isolate_session_drop_lane(s, inst->next_lane);
    mutex_lock(&iso->lock);
    wait_for_reload(iso);
    if (!e && iso->session != s)
        e = err_new(STATUS_INTERNAL, "%s: %s", iso->model, iso->last_end);
    if (!e) {
        inst->lane = inst->next_lane;
        list_append(&iso->instances, &inst->node);
        iso->initialized = true;
        iso->state = ISOLATE_UP;
        atomic_store(&iso->ready, true);
    }
    mutex_unlock(&iso->lock);
    isolate_session_unref(s);
    return e;
}

/* The largest batch size that statistics count: the configured one, but at least LEAST_ROWS. */
static uint32_t most_rows(const struct plugin_model *m)
{
    uint32_t configured = (uint32_t)m->published->max_batch_size;
    return configured > LEAST_ROWS ? configured : LEAST_ROWS;
}

static TRITONSERVER_Error *initialize_instance(TRITONBACKEND_ModelInstance *handle)
{
    struct plugin_instance *i = instance_check(handle);
    struct isolate_instance *inst = MEM_NEW(struct isolate_instance);
    list_init(&inst->node);
    inst->owner = of_backend(i->model->backend);
    inst->instance = i;
    inst->owner->stats = i->stats;
    inst->owner->most_rows = most_rows(i->model);
    struct err *e = load_instance(inst->owner, inst);
    if (e)
        mem_free(inst);
    else
        i->state = inst;
    return (TRITONSERVER_Error *)e;
}

/* Gives an order that must be done within the grace time. */
static struct err *order_in_time(struct isolate *iso, struct isolate_session *s,
                                 struct isolate_lane *lane, uint64_t order, bool *ret_lost)
{
    struct isolate_reply reply = {0};
    isolate_session_begin(lane, order);
    atomic_store(&iso->kill_at, clock_now_ns() + iso->settings.grace_ns);
    isolate_life_look(iso);
    *ret_lost = !isolate_session_order(s, lane, &reply);
    return reply.err;
}

static TRITONSERVER_Error *finalize_instance(TRITONBACKEND_ModelInstance *handle)
{
    struct isolate_instance *inst = instance_check(handle)->state;
    if (!inst)
        return NULL; /* its initialization failed, and the process finalised it */
    struct isolate *iso = inst->owner;
    struct isolate_session *s = NULL;
    struct err *e = NULL;
    mutex_lock(&iso->lock);
    wait_for_reload(iso);
    list_remove(&inst->node);
    if (iso->session && inst->lane)
        s = isolate_session_ref(iso->session);
    mutex_unlock(&iso->lock);
    if (s) {
        bool lost;
        e = order_in_time(iso, s, inst->lane, ORDER_INSTANCE_END, &lost);
        if (!lost) {
            atomic_store(&iso->kill_at, 0);
            isolate_session_drop_lane(s, inst->lane);
        }
    }
    isolate_session_unref(s);
    mem_free(inst->batch);
    mem_free(inst);
    return (TRITONSERVER_Error *)e;
}

static struct err *isolate_execute(struct plugin_instance *i, struct request **requests,
                                   size_t count)
{
    struct isolate_instance *inst = i->state;
    struct isolate *iso = inst->owner;
    struct isolate_session *s;
    struct isolate_lane *lane;
    struct err *e = isolate_life_acquire(iso, inst, &s, &lane);
    if (e)
        return e;
    size_t put = isolate_request_put(s, inst, lane, requests, count);
    if (put) {
        struct isolate_reply reply = {0};
        atomic_store_explicit(&inst->begun, clock_now_ns(), memory_order_relaxed);
        if (!atomic_load(&iso->ticking))
            isolate_life_look(iso);
        if (isolate_session_order(s, lane, &reply)) {
            atomic_fetch_add_explicit(&s->executed, 1, memory_order_relaxed);
            for (size_t k = 0; reply.err && k < put; k++)
                isolate_flight_fail(s, inst->batch[k], reply.err);
            err_free(reply.err);
        } else {
            err_free(isolate_life_ended(iso, s, ""));
        }
        atomic_store_explicit(&inst->begun, 0, memory_order_relaxed);
    }
    isolate_session_unref(s);
    return NULL;
}

static bool isolate_is_ready(const struct plugin_backend *b)
{
    const struct isolate *iso = of_backend((struct plugin_backend *)(uintptr_t)b);
    return atomic_load(&iso->ready);
}

/* No new requests will come. If the process then stays silent for its grace time, it is ended. */
static void isolate_retire(struct plugin_backend *b)
{
    struct isolate *iso = of_backend(b);
    time_ns not_yet = 0;
    if (!atomic_compare_exchange_strong(&iso->retired, &not_yet, clock_now_ns()))
        return;
    isolate_life_look(iso);
}

/* Tells the process to end, and ends it by force if it does not. */
static void end_process(struct isolate *iso)
{
    mutex_lock(&iso->lock);
    iso->stopping = true;
    struct isolate_session *s = iso->session ? isolate_session_ref(iso->session) : NULL;
    bool loads = iso->reloading;
    mutex_cond_broadcast(&iso->changed);
    mutex_unlock(&iso->lock);
    if (!s)
        return;
    bool lost = true;
    struct err *e = NULL;
    if (!loads)
        e = order_in_time(iso, s, &s->setup, ORDER_END, &lost);
    if (e)
        LOG_ERROR("finalizing %s in its process: %s", iso->model, err_message(e));
    err_free(e);
    mutex_lock(&iso->lock);
    iso->orderly = !lost;
    mutex_unlock(&iso->lock);
    if (lost)
        atomic_store(&iso->kill_at, 1);
    isolate_session_end(s);
    isolate_life_look(iso);
    isolate_session_unref(s);
}

/* Finalizes the model and the backend and ends the process, by force if it takes too long. No
 * instance is left. */
static void isolate_leave(struct plugin_backend *b)
{
    struct isolate *iso = of_backend(b);
    if (iso->supervisor)
        end_process(iso);
    isolate_life_stop(iso);
    backend_fini_remote(&iso->backend);
    strbuf_fini(&iso->hello);
    isolate_settings_fini(&iso->settings);
    mutex_cond_fini(&iso->changed);
    mutex_fini(&iso->lock);
    mem_free(iso->written);
    mem_free(iso->last_end);
    mem_free(iso->program);
    mem_free(iso->model_dir);
    mem_free(iso->name);
    mem_free(iso->model);
    mem_free(iso);
}

static struct isolate *isolate_make(const struct backend_registry *r,
                                    const struct Inference__ModelConfig *proto, const char *name,
                                    const char *model_dir, int64_t version)
{
    struct isolate *iso = MEM_NEW(struct isolate);
    struct strbuf model = STRBUF_INIT;
    strbuf_printf(&model, "model '%s' version %" PRId64, name, version);
    iso->model = strbuf_take(&model);
    iso->name = mem_strdup(name);
    iso->model_dir = mem_strdup(model_dir);
    iso->version = version;
    iso->last_end = mem_strdup("");
    mutex_init(&iso->lock, MUTEX_RANK_MODEL);
    mutex_cond_init(&iso->changed);
    list_init(&iso->instances);
    put_hello(iso, r, proto);
    backend_init_remote(&iso->backend, r, proto->backend,
                        &(struct backend_entries){.model_initialize = initialize_model,
                                                  .instance_initialize = initialize_instance,
                                                  .instance_finalize = finalize_instance,
                                                  .run = isolate_execute,
                                                  .ready = isolate_is_ready,
                                                  .retire = isolate_retire,
                                                  .leave = isolate_leave});
    return iso;
}

static struct err *isolate_start(struct isolate *iso)
{
    struct isolate_session *s;
    struct err *e = isolate_life_start(iso);
    if (!e)
        e = isolate_life_acquire(iso, NULL, &s, NULL);
    if (e)
        return e;
    int policy = TRITONBACKEND_EXECUTION_BLOCKING;
    bool lost;
    struct isolate_reply reply = {.attributes = &iso->backend.attributes, .policy = &policy};
    isolate_life_setup_begin(iso);
    e = isolate_load_backend(iso, s, &reply, &lost);
    isolate_life_setup_end(iso);
    if (lost)
        e = isolate_life_ended(iso, s, "while it loaded the backend");
    iso->backend.execution_policy = (TRITONBACKEND_ExecutionPolicy)policy;
    isolate_session_unref(s);
    return e;
}

/* Finds the executable, and the files that the process must be able to open. */
static struct err *find_what_it_needs(const struct backend_registry *r,
                                      const struct Inference__ModelConfig *proto, const char *name,
                                      const char *model_dir, struct isolate_settings *settings,
                                      char **ret_program)
{
    if (proto->sequence_batching && proto->sequence_batching->n_state)
        return err_new(STATUS_UNSUPPORTED,
                       "model '%s': 'sequence_batching.state' is not kept for a "
                       "model with ISOLATION",
                       name);
    struct err *e = find_program(name, ret_program);
    if (e)
        return e;
    struct strbuf libraries = STRBUF_INIT;
    const char *slash = strrchr(*ret_program, '/');
    strbuf_printf(&libraries, "%.*s/../lib", slash ? (int)(slash - *ret_program) : 1,
                  slash ? *ret_program : ".");
    isolate_settings_add_file(settings, model_dir, strlen(model_dir), false);
    isolate_settings_add_file(settings, r->directory, strlen(r->directory), false);
    isolate_settings_add_file(settings, libraries.data, libraries.len, false);
    strbuf_fini(&libraries);
    return NULL;
}

struct err *isolate_backend_new(const struct backend_registry *r,
                                const struct Inference__ModelConfig *proto, const char *name,
                                const char *model_dir, int64_t version, struct plugin_backend **ret)
{
    struct isolate_settings settings;
    *ret = NULL;
    struct err *e = isolate_settings_read(proto, &settings);
    char *program = NULL;
    if (!e && settings.wanted)
        e = find_what_it_needs(r, proto, name, model_dir, &settings, &program);
    if (e || !settings.wanted) {
        isolate_settings_fini(&settings);
        return e;
    }
    struct isolate *iso = isolate_make(r, proto, name, model_dir, version);
    iso->program = program;
    iso->settings = settings;
    e = isolate_start(iso);
    if (e)
        isolate_leave(&iso->backend);
    else
        *ret = &iso->backend;
    return e;
}

struct err *isolate_group(const struct Inference__ModelConfig *proto, bool *ret_named,
                          uint32_t *ret_group)
{
    struct isolate_settings settings;
    uint32_t user;
    struct err *e = isolate_settings_read(proto, &settings);
    bool named = !e && settings.wanted && settings.user;
    if (named)
        e = err_wrap(confine_find_user(settings.user, &user, ret_group),
                     "parameter 'ISOLATION_USER'");
    isolate_settings_fini(&settings);
    *ret_named = named;
    return e;
}
