#include "base/log.h"

#include "base/strbuf.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_BURST 1000u /* lines a second and call site */

/* Relaxed: a line that races with a change of the settings may follow either. */
static atomic_bool info_on = true;
static atomic_bool warning_on = true;
static atomic_bool error_on = true;
static atomic_uint verbose_level;
static atomic_int format_now;
static atomic_int fd_now = STDERR_FILENO;

struct log_settings log_get(void)
{
    return (struct log_settings){
        .info = atomic_load_explicit(&info_on, memory_order_relaxed),
        .warning = atomic_load_explicit(&warning_on, memory_order_relaxed),
        .error = atomic_load_explicit(&error_on, memory_order_relaxed),
        .verbose = atomic_load_explicit(&verbose_level, memory_order_relaxed),
        .format = (enum log_format)atomic_load_explicit(&format_now, memory_order_relaxed),
        .fd = atomic_load_explicit(&fd_now, memory_order_relaxed),
    };
}

void log_set(const struct log_settings *settings)
{
    atomic_store_explicit(&info_on, settings->info, memory_order_relaxed);
    atomic_store_explicit(&warning_on, settings->warning, memory_order_relaxed);
    atomic_store_explicit(&error_on, settings->error, memory_order_relaxed);
    atomic_store_explicit(&verbose_level, settings->verbose, memory_order_relaxed);
    atomic_store_explicit(&format_now, (int)settings->format, memory_order_relaxed);
    atomic_store_explicit(&fd_now, settings->fd, memory_order_relaxed);
}

bool log_verbose_enabled(uint32_t n)
{
    return atomic_load_explicit(&verbose_level, memory_order_relaxed) >= n;
}

bool log_enabled(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_INFO:
        return atomic_load_explicit(&info_on, memory_order_relaxed);
    case LOG_LEVEL_WARN:
        return atomic_load_explicit(&warning_on, memory_order_relaxed);
    case LOG_LEVEL_ERROR:
        return atomic_load_explicit(&error_on, memory_order_relaxed);
    case LOG_LEVEL_VERBOSE:
        return log_verbose_enabled(1);
    }
    return false;
}

/* Counts a line of this second; returns false when it must be held back. *ret_held is what earlier seconds held back. */
static bool site_admits(struct log_site *site, uint32_t second, uint32_t *ret_held)
{
    *ret_held = 0;
    uint32_t last = atomic_load_explicit(&site->second, memory_order_relaxed);
    if (last != second && atomic_compare_exchange_strong(&site->second, &last, second)) {
        uint32_t lines = atomic_exchange(&site->lines, 0);
        *ret_held = lines > LOG_BURST ? lines - LOG_BURST : 0;
    }
    return atomic_fetch_add_explicit(&site->lines, 1, memory_order_relaxed) < LOG_BURST;
}

static void put_prefix(struct strbuf *sb, enum log_level level, const struct timespec *now,
                       const char *file, int line)
{
    static const char letters[] = {'I', 'W', 'E', 'I'};
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    struct tm tm;
    gmtime_r(&now->tv_sec, &tm);
    if (atomic_load_explicit(&format_now, memory_order_relaxed) == LOG_FORMAT_ISO8601)
        strbuf_printf(sb, "%04d-%02d-%02dT%02d:%02d:%02dZ %c %d %s:%d] \"", tm.tm_year + 1900,
                      tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, letters[level],
                      (int)getpid(), name, line);
    else
        strbuf_printf(sb, "%c%02d%02d %02d:%02d:%02d.%06ld %d %s:%d] \"", letters[level],
                      tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                      now->tv_nsec / 1000, (int)getpid(), name, line);
}

/* The message between quotes, so that a line break or an escape sequence from a peer cannot forge a line. */
static void put_escaped(struct strbuf *sb, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            strbuf_printf(sb, "\\%c", c);
        else if (c == '\n')
            strbuf_puts(sb, "\\n");
        else if (c == '\t')
            strbuf_puts(sb, "\\t");
        else if (c < 0x20 || c == 0x7f)
            strbuf_printf(sb, "\\u%04x", c);
        else
            strbuf_putc(sb, (char)c);
    }
}

void log_line(struct log_site *site, enum log_level level, const char *file, int line,
              const char *fmt, ...)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint32_t held;
    if (!site_admits(site, (uint32_t)now.tv_sec, &held))
        return;
    char message[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);

    struct strbuf sb = STRBUF_INIT;
    put_prefix(&sb, level, &now, file, line);
    put_escaped(&sb, message);
    if (held)
        strbuf_printf(&sb, " (%u like lines held back)", held);
    strbuf_puts(&sb, "\"\n");
    /* One write a line keeps lines whole; a log that cannot be written must not stop the server. */
    ssize_t ignored = write(atomic_load_explicit(&fd_now, memory_order_relaxed), sb.data, sb.len);
    (void)ignored;
    strbuf_fini(&sb);
}
