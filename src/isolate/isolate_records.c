#include "isolate/isolate_records.h"

#include "base/mem.h"
#include "infer/stats.h"
#include "model/config.h"
#include "plugin/attribute.h"
#include "isolate/isolate_flight.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_session.h"
#include "plugin/usage.h"

#include <string.h>

static bool get_attributes(struct isolate_wire *w, struct isolate_reply *reply)
{
    if (!reply || !reply->attributes)
        return false;
    struct attribute *a = reply->attributes;
    uint64_t policy = isolate_wire_get_most(w, TRITONBACKEND_EXECUTION_DEVICE_BLOCKING);
    a->parallel_instances = isolate_wire_get(w) != 0;
    uint64_t wishes = isolate_wire_get_most(w, ATTRIBUTE_MAX_WISHES);
    for (uint64_t i = 0; i < wishes && !w->bad; i++) {
        uint64_t devices[ATTRIBUTE_MAX_DEVICES];
        int kind = (int)isolate_wire_get_most(w, 255);
        uint64_t instances = isolate_wire_get_most(w, INT32_MAX);
        uint64_t device_count = isolate_wire_get_most(w, ATTRIBUTE_MAX_DEVICES);
        for (uint64_t k = 0; k < device_count; k++)
            devices[k] = isolate_wire_get_most(w, INT32_MAX);
        if (w->bad)
            break;
        struct err *e = attribute_add_wish(a, kind, instances, devices, device_count);
        w->bad |= e != NULL;
        err_free(e);
    }
    *reply->policy = (int)policy;
    return !w->bad;
}

static bool get_config(struct isolate_wire *w, struct isolate_reply *reply)
{
    uint64_t len;
    const char *json = isolate_wire_get_bytes(w, &len);
    if (!reply || !reply->config || w->bad || len > CONFIG_MAX_BYTES)
        return false;
    mem_free(*reply->config);
    *reply->config = mem_strndup(len ? json : "", len);
    return true;
}

static bool get_usage(struct isolate_wire *w, struct isolate_reply *reply)
{
    struct usage_row rows[USAGE_MAX_ROWS];
    uint64_t count = isolate_wire_get_most(w, USAGE_MAX_ROWS);
    for (uint64_t i = 0; i < count; i++) {
        rows[i].memory = (enum buf_memory)isolate_wire_get_most(w, BUF_MEMORY_GPU);
        rows[i].device = (int64_t)isolate_wire_get(w);
        rows[i].bytes = isolate_wire_get(w);
    }
    if (!reply || !reply->usage || w->bad)
        return false;
    struct err *e = usage_report(reply->usage, rows, count);
    bool ok = !e;
    err_free(e);
    return ok;
}

static bool get_done(struct isolate_wire *w, struct isolate_reply *reply)
{
    uint64_t code = isolate_wire_get_most(w, STATUS_CANCELLED);
    struct err *e = isolate_wire_get_error(w, (enum status)code);
    if (!reply || w->bad) {
        err_free(e);
        return false;
    }
    reply->done = true;
    reply->err = e;
    return true;
}

static bool get_batch(struct isolate_session *s, struct isolate_wire *w)
{
    struct stats_compute c = {0};
    uint32_t rows = (uint32_t)isolate_wire_get_most(w, UINT32_MAX);
    c.start = isolate_wire_get(w);
    c.input_end = isolate_wire_get(w);
    c.output_start = isolate_wire_get(w);
    c.end = isolate_wire_get(w);
    if (w->bad || !s->stats)
        return false;
    /* Limited, because each counted batch size takes memory of the server. */
    stats_batch(s->stats, rows < s->most_rows ? rows : s->most_rows, &c,
                clock_wall_at(stats_ended(s->stats, &c)));
    return true;
}

static bool apply(struct isolate_session *s, uint64_t kind, const void *body, size_t len,
                  struct isolate_reply *reply)
{
    struct isolate_wire w;
    isolate_wire_read(&w, body, len);
    switch (kind) {
    case RECORD_DONE:
        return get_done(&w, reply);
    case RECORD_ATTRIBUTES:
        return get_attributes(&w, reply);
    case RECORD_CONFIG:
        return get_config(&w, reply);
    case RECORD_USAGE:
        return get_usage(&w, reply);
    case RECORD_BATCH:
        return get_batch(s, &w);
    default:
        return isolate_flight_record(s, kind, body, len);
    }
}

bool isolate_records_apply(struct isolate_session *s, const void *bytes, size_t len,
                           struct isolate_reply *reply)
{
    struct isolate_wire w;
    isolate_wire_read(&w, bytes, len);
    atomic_store_explicit(&s->heard, clock_now_ns(), memory_order_relaxed);
    while (isolate_wire_left(&w)) {
        uint64_t kind = isolate_wire_get(&w);
        uint64_t body_len;
        const void *body = isolate_wire_get_bytes(&w, &body_len);
        bool done = reply && reply->done; /* DONE is the last record */
        if (w.bad || done || !apply(s, kind, body, body_len, reply))
            return false;
    }
    return !w.bad;
}
