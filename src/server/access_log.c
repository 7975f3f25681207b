#include "server/access_log.h"

#include "os/log_sink.h"
#include "base/log_text.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <time.h>

/* Relaxed: set before the first request; a line that races with a change may follow either. */
static atomic_int fd_now = -1;
static atomic_bool json_now;

void access_log_set(int fd, bool json)
{
    atomic_store_explicit(&json_now, json, memory_order_relaxed);
    atomic_store_explicit(&fd_now, fd, memory_order_relaxed);
}

bool access_log_on(void)
{
    return atomic_load_explicit(&fd_now, memory_order_relaxed) >= 0;
}

/* Writes a value that came from a client, in quotes. */
static void access_log_put_value(struct strbuf *sb, const char *key, const char *value, bool json)
{
    strbuf_printf(sb, json ? ",\"%s\":\"" : " %s=\"", key);
    log_text_escape_some(sb, value, json, ACCESS_LOG_VALUE_BYTES);
    strbuf_putc(sb, '"');
}

static void access_log_put_word(struct strbuf *sb, const char *key, const char *value, bool json)
{
    strbuf_printf(sb, json ? ",\"%s\":\"%s\"" : " %s=%s", key, value);
}

static void access_log_put_number(struct strbuf *sb, const char *key, uint64_t value, bool json)
{
    strbuf_printf(sb, json ? ",\"%s\":%" PRIu64 : " %s=%" PRIu64, key, value);
}

void access_log_put(const struct access_entry *e)
{
    int fd = atomic_load_explicit(&fd_now, memory_order_relaxed);
    if (fd < 0)
        return;
    bool json = atomic_load_explicit(&json_now, memory_order_relaxed);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb, json ? "{\"time\":\"" : "");
    log_text_time(&sb, &now);
    strbuf_puts(&sb, json ? "\"" : "");
    access_log_put_word(&sb, "peer", e->peer, json);
    access_log_put_word(&sb, "protocol", e->protocol, json);
    access_log_put_word(&sb, "method", e->method, json);
    access_log_put_word(&sb, "route", e->route, json);
    access_log_put_value(&sb, "model", e->model, json);
    access_log_put_number(&sb, "status", (uint64_t)e->status, json);
    access_log_put_number(&sb, "in", e->in_bytes, json);
    access_log_put_number(&sb, "out", e->out_bytes, json);
    access_log_put_number(&sb, "us", e->duration_ns / 1000, json);
    access_log_put_value(&sb, "id", e->id, json);
    strbuf_puts(&sb, json ? "}\n" : "\n");
    log_sink_put(fd, sb.data, sb.len);
    strbuf_fini(&sb);
}
