#include "isolate/child/isolate_child.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/gpu_memory.h"
#include "infer/factory.h"
#include "infer/stats.h"
#include "model/config.h"
#include "os/packet.h"
#include "os/shm.h"
#include "os/thread.h"
#include "isolate/child/isolate_child_priv.h"
#include "plugin/model.h"
#include "os/process/spawn.h"
#include "proto/model_config.pb-c.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TRIM_NS  TIME_MS(500)
#define SWEEP_NS TIME_S(1)

static int crash_fd = -1;    /* the control socket */
static atomic_bool crashing; /* a thread has entered isolate_child_crashed */

/* ---- Orders on the setup lane */

static void put_attributes(struct isolate_child *child)
{
    const struct attribute *a = &child->backend->attributes;
    struct strbuf local = STRBUF_INIT;
    size_t mark;
    struct strbuf *sb = isolate_child_lane_say(&local, NULL, RECORD_ATTRIBUTES, &mark);
    isolate_wire_put(sb, child->backend->execution_policy);
    isolate_wire_put(sb, a->parallel_instances);
    isolate_wire_put(sb, a->wish_count);
    for (size_t i = 0; i < a->wish_count; i++) {
        isolate_wire_put(sb, (uint64_t)a->wishes[i].kind);
        isolate_wire_put(sb, (uint64_t)a->wishes[i].count);
        isolate_wire_put(sb, a->wishes[i].gpu_count);
        for (size_t k = 0; k < a->wishes[i].gpu_count; k++)
            isolate_wire_put(sb, (uint64_t)a->wishes[i].gpus[k]);
    }
    isolate_child_lane_said(child, sb, mark, false);
}

static struct err *hello(struct isolate_child *child, struct isolate_wire *w)
{
    struct err *refused = child->refused;
    child->refused = NULL;
    if (refused)
        return refused;
    /* The registry borrows its strings, so a copy of the order keeps them. */
    size_t len = isolate_wire_left(w);
    strbuf_append(&child->strings, w->at, len);
    isolate_wire_read(w, child->strings.data, len);
    const char *backend = isolate_wire_get_text(w);
    const char *runtime = isolate_wire_get_text(w);
    child->name = mem_strdup(isolate_wire_get_text(w));
    child->model_dir = mem_strdup(isolate_wire_get_text(w));
    child->version = (int64_t)isolate_wire_get(w);
    budget_set_limit(isolate_wire_get(w));
    gpu_memory_limit_pinned(isolate_wire_get(w));
    for (int64_t id = 0; id < GPU_MAX; id++)
        gpu_memory_limit(id, isolate_wire_get(w));
    struct log_settings log = log_get();
    log.info = isolate_wire_get(w) != 0;
    log.warning = isolate_wire_get(w) != 0;
    log.error = isolate_wire_get(w) != 0;
    log.verbose = (uint32_t)isolate_wire_get(w);
    log_set(&log);
    const char *directory = isolate_wire_get_text(w);
    bool auto_complete = isolate_wire_get(w) != 0;
    size_t count = isolate_wire_get(w);
    child->settings = mem_zalloc((count + 1) * sizeof(*child->settings));
    for (size_t i = 0; i < count; i++) {
        child->settings[i].backend = isolate_wire_get_text(w);
        child->settings[i].key = isolate_wire_get_text(w);
        child->settings[i].value = isolate_wire_get_text(w);
    }
    CHECK(!w->bad);
    backend_registry_init(&child->registry, directory, child->settings, count, auto_complete);
    struct err *e = backend_get(&child->registry,
                                &(struct backend_wanted){.name = backend,
                                                         .runtime = runtime,
                                                         .model = child->name,
                                                         .model_dir = child->model_dir,
                                                         .version = child->version},
                                true, &child->backend);
    if (!e)
        put_attributes(child);
    return e;
}

static struct err *begin_model(struct isolate_child *child, struct isolate_wire *w)
{
    bool auto_complete = isolate_wire_get(w) != 0;
    const char *json = isolate_wire_get_text(w);
    struct Inference__ModelConfig *proto;
    struct err *e = config_parse_json(json, strlen(json), &proto);
    if (e)
        return e;
    child->model = model_new(child->backend, child->name, child->version, child->model_dir, proto,
                             auto_complete, NULL);
    e = model_initialize(child->model);
    if (e)
        return e;
    size_t len;
    size_t mark;
    char *completed = model_print_config(child->model, &len);
    struct strbuf local = STRBUF_INIT;
    struct strbuf *sb = isolate_child_lane_say(&local, NULL, RECORD_CONFIG, &mark);
    isolate_wire_put_bytes(sb, completed, len);
    isolate_child_lane_said(child, sb, mark, false);
    mem_free(completed);
    isolate_child_lane_put_usage(child, &child->model->usage);
    return NULL;
}

static struct err *take_config(struct isolate_child *child, struct isolate_wire *w)
{
    const char *json = isolate_wire_get_text(w);
    struct Inference__ModelConfig *proto = NULL;
    struct err *e = config_parse_json(json, strlen(json), &proto);
    if (e)
        return e;
    e = config_compile(&proto, &child->published);
    config_free_proto(proto);
    if (e)
        return e;
    config_free_proto(child->model->proto);
    child->model->proto = NULL;
    model_publish_config(child->model, child->published);
    return NULL;
}

static struct err *add_lane(struct isolate_child *child, int fd)
{
    struct isolate_child_lane *lane = MEM_NEW(struct isolate_child_lane);
    isolate_child_lane_init(lane, child, fd);
    struct err *e = thread_start("instance", isolate_child_lane_run, lane, &lane->thread);
    mutex_lock(&child->lock);
    list_append(&child->lanes, &lane->node);
    mutex_unlock(&child->lock);
    return e;
}

/* Frees the instances that the parent did not end, the model, and the backend. */
static void end_model(struct isolate_child *child)
{
    struct list *node;
    while ((node = list_pop(&child->lanes))) {
        struct isolate_child_lane *lane = LIST_ITEM(node, struct isolate_child_lane, node);
        isolate_child_lane_fini(lane);
        mem_free(lane);
    }
    /* Threads of the backend released their last requests under this lock; taking it makes sure
     * that they are done with them. */
    mutex_lock(&child->lock);
    mutex_unlock(&child->lock);
    model_free(child->model);
    child->model = NULL;
    if (child->settings)
        backend_registry_fini(&child->registry);
    if (child->published)
        config_unref(child->published);
    atomic_store(&child->ended, true);
}

struct err *isolate_child_setup_order(struct isolate_child *child, uint64_t order,
                                      struct isolate_wire *w, const int *fds)
{
    switch (order) {
    case ORDER_HELLO:
        return hello(child, w);
    case ORDER_MODEL:
        return begin_model(child, w);
    case ORDER_CONFIG:
        return take_config(child, w);
    case ORDER_LANE:
        return add_lane(child, fds[0]);
    case ORDER_END:
        end_model(child);
        return NULL;
    default:
        return err_new(STATUS_INTERNAL, "unknown order");
    }
}

/* ---- The main thread */

/* An output that is made during this look is either seen by it, or asks for another look. */
static void trim_due(struct loop_timer *t)
{
    struct isolate_child *child = LIST_ITEM(t, struct isolate_child, trim);
    atomic_store(&child->trimming, false);
    if (isolate_child_outputs_trim(&child->outputs) && !atomic_exchange(&child->trimming, true))
        loop_timer_set(child->loop, t, clock_now_ns() + TRIM_NS);
}

static void trim_wanted(struct mail *m)
{
    struct isolate_child *child = LIST_ITEM(m, struct isolate_child, trim_mail);
    loop_timer_set(child->loop, &child->trim, clock_now_ns() + TRIM_NS);
}

void isolate_child_watch_outputs(struct isolate_child *child)
{
    if (!atomic_load_explicit(&child->trimming, memory_order_relaxed) &&
        !atomic_exchange(&child->trimming, true))
        loop_post(child->loop, &child->trim_mail, &child->trim_mail);
}

static void sweep_due(struct loop_timer *t)
{
    const struct isolate_child *child = LIST_ITEM(t, struct isolate_child, sweep);
    time_ns now = loop_now(child->loop);
    factory_sweep(now);
    loop_timer_set(child->loop, t, now + SWEEP_NS);
}

static void cancel(struct isolate_child *child, const uint8_t *bytes, size_t len)
{
    struct isolate_wire w;
    uint64_t list_bytes;
    isolate_wire_read(&w, bytes, len);
    if (isolate_wire_get(&w) != ORDER_CANCEL)
        return;
    const uint8_t *list = isolate_wire_get_bytes(&w, &list_bytes);
    for (size_t i = 0; i + sizeof(uint64_t) <= list_bytes; i += sizeof(uint64_t)) {
        uint64_t id;
        memcpy(&id, list + i, sizeof(id));
        isolate_child_request_cancel(child, id);
    }
}

static void isolate_child_on_control(struct loop_fd *w, uint32_t events)
{
    (void)events;
    struct isolate_child *child = LIST_ITEM(w, struct isolate_child, control);
    const uint8_t *bytes;
    size_t len;
    enum isolate_frame_result r;
    while ((r = isolate_frame_receive(&child->frame, child->control_fd, false, false, &bytes,
                                      &len)) == ISOLATE_FRAME_OK)
        cancel(child, bytes, len);
    if (r == ISOLATE_FRAME_NONE)
        return;
    if (atomic_load(&crashing))
        /* the signal ends the process, perhaps after a core file was written */
        loop_del(child->loop, w);
    else if (!atomic_load(&child->ended))
        spawn_end_group(); /* the parent is gone, or wants this process to end */
    else
        loop_stop(child->loop);
}

/* Sends log lines to the parent, one per message. */
static void send_log(int fd, bool print_too)
{
    if (print_too)
        spawn_print_to(fd);
    struct log_settings log = log_get();
    log.fd = fd;
    log.format = LOG_FORMAT_JSON;
    log_set(&log);
}

/* Takes the descriptors and settings that the parent sends first. */
static bool isolate_child_begin(struct isolate_child *child)
{
    const uint8_t *bytes;
    size_t len;
    struct isolate_wire w;
    isolate_frame_init(&child->frame, NULL);
    if (isolate_frame_receive(&child->frame, SPAWN_CONTROL_FD, true, true, &bytes, &len) !=
        ISOLATE_FRAME_OK)
        return false;
    isolate_wire_read(&w, bytes, len);
    uint64_t order = isolate_wire_get(&w);
    child->shared_bytes = isolate_wire_get(&w);
    uint64_t limit = isolate_wire_get(&w);
    bool confined;
    child->refused = isolate_child_confine(&w, &confined);
    const int *fds = child->frame.fds;
    if (w.bad || order != ORDER_START || fds[ISOLATE_FD_SETUP] < 0)
        return false;
    child->in = shm_map(fds[ISOLATE_FD_IN], child->shared_bytes);
    uint8_t *out = shm_map(fds[ISOLATE_FD_OUT], ISOLATE_SLOTS + child->shared_bytes);
    if (!child->in || !out)
        return false;
    isolate_child_outputs_init(&child->outputs, fds[ISOLATE_FD_OUT], out, child->shared_bytes,
                               limit);
    send_log(fds[ISOLATE_FD_LOG], confined);
    isolate_child_lane_init(&child->setup, child, fds[ISOLATE_FD_SETUP]);
    return true;
}

static struct err *isolate_child_serve(struct isolate_child *child)
{
    child->control = (struct loop_fd){.fd = SPAWN_CONTROL_FD, .ready = isolate_child_on_control};
    child->trim = (struct loop_timer)LOOP_TIMER_INIT(trim_due);
    child->trim_mail.deliver = trim_wanted;
    struct err *e = loop_new(&child->loop);
    if (!e)
        e = loop_add(child->loop, &child->control, PACKET_READABLE);
    if (!e)
        e = thread_start("setup", isolate_child_lane_run, &child->setup, &child->setup.thread);
    if (!e) {
        child->sweep = (struct loop_timer)LOOP_TIMER_INIT(sweep_due);
        loop_timer_set(child->loop, &child->sweep, clock_now_ns() + SWEEP_NS);
        loop_run(child->loop);
    }
    return e;
}

int isolate_child_is(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], ISOLATE_ARGUMENT) == 0;
}

int isolate_child_run(void)
{
    static struct isolate_child child;
    spawn_die_with_parent();
    signal(SIGPIPE, SIG_IGN);
    crash_fd = SPAWN_CONTROL_FD;
    child.control_fd = SPAWN_CONTROL_FD;
    mutex_init(&child.control_lock, MUTEX_RANK_THREAD);
    mutex_init(&child.lock, MUTEX_RANK_SCHEDULER);
    list_init(&child.lanes);
    child.stats = stats_new();
    struct err *e = isolate_child_begin(&child)
                        ? isolate_child_serve(&child)
                        : err_new(STATUS_INTERNAL, "this is not for people to start");
    if (e) {
        fprintf(stderr, "nereid: %s\n", err_message(e));
        err_free(e);
        return 1;
    }
    isolate_child_lane_fini(&child.setup);
    isolate_child_outputs_fini(&child.outputs);
    isolate_frame_fini(&child.frame);
    loop_free(child.loop);
    stats_free(child.stats);
    strbuf_fini(&child.strings);
    mem_free(child.settings);
    mutex_lock(&child.lock); /* wait for the backend's own threads */
    mem_free(child.requests);
    mutex_unlock(&child.lock);
    mem_free(child.name);
    mem_free(child.model_dir);
    return 0;
}

void isolate_child_crashed(void)
{
    if (crash_fd < 0)
        return;
    atomic_store(&crashing, true);
    packet_end(crash_fd);
}
