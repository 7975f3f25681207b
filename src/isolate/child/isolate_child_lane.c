/* Threads of the child process that take orders from the parent, and the records that they send. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "model/config.h"
#include "os/dl_pages.h"
#include "os/heap.h"
#include "os/packet.h"
#include "os/thread.h"
#include "plugin/host_policy.h"
#include "plugin/instance.h"
#include "isolate/child/isolate_child_priv.h"
#include "plugin/usage.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

#define FLUSH_BYTES 32768u /* so that a message fits in a packet */

/* How long an instance has nothing to do before it gives back what it left in the heap. */
#define GIVE_BACK_WAIT TIME_S(1)

/* the lane whose order this thread works on */
static _Thread_local struct isolate_child_lane *current;

struct strbuf *isolate_child_lane_say(struct strbuf *local, struct isolate_child_request *cr,
                                      enum isolate_record kind, size_t *ret_mark)
{
    struct strbuf *sb = current ? &current->out : local;
    isolate_wire_put(sb, kind);
    *ret_mark = sb->len;
    isolate_wire_put(sb, 0); /* the length of the body */
    if (cr) {
        isolate_wire_put(sb, cr->id);
        isolate_wire_put(sb, atomic_fetch_add_explicit(&cr->place, 1, memory_order_relaxed));
    }
    return sb;
}

static void flush(struct isolate_child_lane *lane)
{
    if (lane->out.len)
        (void)isolate_frame_send(lane->fd, lane->out.data, lane->out.len, NULL, 0);
    lane->out.len = 0;
}

void isolate_child_lane_said(struct isolate_child *child, struct strbuf *sb, size_t mark, bool now)
{
    uint64_t len = sb->len - mark - sizeof(uint64_t);
    memcpy(sb->data + mark, &len, sizeof(len));
    if (current) {
        if (now || sb->len > FLUSH_BYTES)
            flush(current);
        return;
    }
    mutex_lock(&child->control_lock);
    (void)isolate_frame_send(child->control_fd, sb->data, sb->len, NULL, 0);
    mutex_unlock(&child->control_lock);
    strbuf_fini(sb);
}

void isolate_child_lane_put_usage(struct isolate_child *child, struct usage *usage)
{
    struct usage_row *rows = NULL;
    size_t count = 0;
    size_t mark;
    usage_sum(usage, &rows, &count);
    struct strbuf local = STRBUF_INIT;
    struct strbuf *sb = isolate_child_lane_say(&local, NULL, RECORD_USAGE, &mark);
    isolate_wire_put(sb, count);
    for (size_t i = 0; i < count; i++) {
        isolate_wire_put(sb, rows[i].memory);
        isolate_wire_put(sb, (uint64_t)rows[i].device);
        isolate_wire_put(sb, rows[i].bytes);
    }
    isolate_child_lane_said(child, sb, mark, false);
    mem_free(rows);
}

static struct host_policies take_policies(struct isolate_wire *w,
                                          struct host_policy_setting settings[2])
{
    static const char *const keys[2] = {"cpu-cores", "numa-node"};
    struct host_policies all = {.settings = settings};
    const char *name = isolate_wire_get_text(w);
    for (size_t k = 0; k < 2; k++) {
        const char *value = isolate_wire_get_text_or_null(w);
        if (value)
            settings[all.count++] =
                (struct host_policy_setting){.policy = name, .key = keys[k], .value = value};
    }
    return all;
}

static struct err *begin_instance(struct isolate_child_lane *lane, struct isolate_wire *w)
{
    struct isolate_child *child = lane->child;
    const char *name = isolate_wire_get_text(w);
    TRITONSERVER_InstanceGroupKind kind = (TRITONSERVER_InstanceGroupKind)isolate_wire_get(w);
    int32_t device = (int32_t)isolate_wire_get(w);
    uint64_t len;
    const uint8_t *packed = isolate_wire_get_bytes(w, &len);
    struct host_policy_setting settings[2];
    struct host_policies policies = take_policies(w, settings);
    CHECK(!w->bad);
    Inference__ModelInstanceGroup *group =
        inference__model_instance_group__unpack(NULL, len, len ? packed : (const uint8_t *)"");
    CHECK(group);
    struct err *e = instance_new(child->model, child->stats, name, kind, device, group, &policies,
                                 &lane->instance);
    inference__model_instance_group__free_unpacked(group, NULL);
    if (e)
        return e;
    instance_bind(lane->instance);
    lane->instance->reports = &isolate_child_request_reports;
    lane->instance->reports_to = child;
    isolate_child_lane_put_usage(child, &lane->instance->usage);
    dl_pages_forget();
    heap_keep_large();
    return NULL;
}

/* Receives the next order. What executions left in the heap goes back to the system when none came
 * for a while; the main process has its housekeeping for that. */
static enum isolate_frame_result isolate_child_lane_next(struct isolate_child_lane *lane,
                                                         const uint8_t **ret, size_t *ret_len)
{
    bool setup = lane == &lane->child->setup;
    enum isolate_frame_result got;
    while ((got = isolate_frame_receive(&lane->frame, lane->fd, setup, true, ret, ret_len)) ==
           ISOLATE_FRAME_NONE) {
        heap_empty_own();
        heap_give_back();
        heap_shorten_own();
        lane->keeps = false;
        packet_set_patience(lane->fd, 0);
    }
    return got;
}

/* Execute returned an error: answers the requests that the backend did not release. */
static void fail_batch(struct isolate_child_lane *lane, size_t count, const struct err *e)
{
    struct stats_compute none = {0};
    for (size_t i = 0; i < count; i++) {
        if (!lane->batch[i])
            continue; /* the backend released it in spite of its error */
        isolate_child_request_reports.request(lane->instance, lane->batch[i], false, &none);
        response_fail(lane->batch[i], err_copy(e));
    }
}

static struct err *isolate_child_lane_execute(struct isolate_child_lane *lane,
                                              struct isolate_wire *w)
{
    uint64_t count = isolate_wire_get(w);
    if (count > lane->batch_cap) {
        lane->batch = mem_realloc(lane->batch, count * sizeof(*lane->batch));
        lane->batch_cap = count;
    }
    for (uint64_t i = 0; i < count; i++) {
        lane->batch[i] = isolate_child_request_read(lane->child, w);
        CHECK(!w->bad);
    }
    log_context(lane->batch[0]->id, (uint32_t)count);
    struct err *e = instance_execute(lane->instance, lane->batch, count);
    log_context("", 0);
    if (e)
        fail_batch(lane, count, e);
    err_free(e);
    if (!lane->keeps)
        packet_set_patience(lane->fd, GIVE_BACK_WAIT);
    lane->keeps = true;
    return NULL;
}

static void put_done(struct isolate_child_lane *lane, struct err *e)
{
    struct strbuf local = STRBUF_INIT;
    size_t mark;
    struct strbuf *sb = isolate_child_lane_say(&local, NULL, RECORD_DONE, &mark);
    isolate_wire_put(sb, e ? isolate_wire_code(e) : 0);
    isolate_wire_put_text(sb, e ? err_message(e) : NULL);
    isolate_child_lane_said(lane->child, sb, mark, true);
    err_free(e);
}

/* Executes one order. Returns false if it was the last. */
static bool obey(struct isolate_child_lane *lane, struct isolate_wire *w)
{
    struct err *e = NULL;
    uint64_t order = isolate_wire_get(w);
    current = lane;
    if (order == ORDER_EXECUTE) {
        e = isolate_child_lane_execute(lane, w);
    } else if (order == ORDER_INSTANCE) {
        e = begin_instance(lane, w);
    } else if (order == ORDER_INSTANCE_END) {
        instance_free(lane->instance);
        lane->instance = NULL;
    } else {
        e = isolate_child_setup_order(lane->child, order, w, lane->frame.fds);
    }
    put_done(lane, e);
    current = NULL;
    return order != ORDER_INSTANCE_END && order != ORDER_END;
}

void isolate_child_lane_run(void *arg)
{
    struct isolate_child_lane *lane = arg;
    const uint8_t *bytes;
    size_t len;
    struct isolate_wire w;
    do {
        if (isolate_child_lane_next(lane, &bytes, &len) != ISOLATE_FRAME_OK)
            break;
        isolate_wire_read(&w, bytes, len);
    } while (obey(lane, &w));
    current = lane; /* nobody reads the records any more, but they need a place */
    instance_free(lane->instance);
    lane->instance = NULL;
    current = NULL;
}

void isolate_child_lane_init(struct isolate_child_lane *lane, struct isolate_child *child, int fd)
{
    *lane = (struct isolate_child_lane){.child = child, .fd = fd};
    list_init(&lane->node);
    isolate_frame_init(&lane->frame, NULL);
}

void isolate_child_lane_fini(struct isolate_child_lane *lane)
{
    packet_end(lane->fd);
    thread_join(lane->thread);
    packet_close(lane->fd);
    isolate_frame_fini(&lane->frame);
    strbuf_fini(&lane->out);
    mem_free(lane->batch);
}
