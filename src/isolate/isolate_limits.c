#include "isolate/isolate_limits.h"

#include "base/log.h"
#include "isolate/isolate_flight.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_session.h"

#define TRIM_NS TIME_MS(500)

bool isolate_limits_over(struct isolate *iso, struct isolate_session *s, time_ns now)
{
    time_ns kill_at = atomic_load(&iso->kill_at);
    if (atomic_load_explicit(&s->doomed, memory_order_relaxed) || (kill_at && kill_at <= now))
        return true;
    time_ns retired = atomic_load(&iso->retired);
    time_ns heard = atomic_load_explicit(&s->heard, memory_order_relaxed);
    time_ns since = retired > heard ? retired : heard;
    bool busy = isolate_flight_count(s) > 0 || !atomic_load(&iso->ready);
    if (retired && busy && now > since && now - since > iso->settings.grace_ns) {
        LOG_ERROR(
            "%s: its process was silent for %.1f s while the model waits to be unloaded: it is "
            "ended",
            iso->model, (double)iso->settings.grace_ns / 1e9);
        return true;
    }
    bool slow = false;
    mutex_lock(&iso->lock);
    LIST_EACH (node, &iso->instances) {
        time_ns begun = atomic_load_explicit(&LIST_ITEM(node, struct isolate_instance, node)->begun,
                                             memory_order_relaxed);
        slow |= iso->settings.execute_ns && begun && now > begun &&
                now - begun > iso->settings.execute_ns;
    }
    mutex_unlock(&iso->lock);
    if (slow)
        LOG_ERROR(
            "%s: an execution took longer than ISOLATION_EXECUTE_TIMEOUT_SECS: its process is "
            "ended",
            iso->model);
    return slow;
}

static void send_cancelled(struct isolate_session *s, struct strbuf *ids)
{
    struct strbuf sb = STRBUF_INIT;
    isolate_wire_put(&sb, ORDER_CANCEL);
    isolate_wire_put_bytes(&sb, ids->data, ids->len);
    /* if it fails, the next message has the later numbers */
    (void)isolate_frame_try_send(s->control_fd, sb.data, sb.len);
    strbuf_fini(&sb);
}

time_ns isolate_limits_look(struct isolate *iso, struct isolate_session *s, time_ns now)
{
    struct strbuf cancelled = STRBUF_INIT;
    isolate_flight_tick(s, now, &cancelled);
    if (cancelled.len)
        send_cancelled(s, &cancelled);
    strbuf_fini(&cancelled);
    unsigned executed = atomic_load_explicit(&s->executed, memory_order_relaxed);
    bool busy = isolate_flight_count(s) || executed != iso->seen;
    iso->seen = executed;
    bool warm = true;
    if (now - iso->trimmed >= TRIM_NS) {
        iso->trimmed = now;
        warm = isolate_session_trim(s);
    }
    if (busy || atomic_load(&iso->kill_at) || atomic_load(&iso->retired))
        return now + ISOLATE_LIMITS_TICK;
    return warm ? iso->trimmed + TRIM_NS : TIME_NEVER;
}
