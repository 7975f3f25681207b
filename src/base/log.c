#include "base/log.h"

#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_BURST   1000u /* lines a second and call site */
#define LINE_BYTES  4096  /* most messages are shorter */
#define MOST_BYTES  65536 /* longer ones are cut */
#define BACKENDS_AT 1u    /* in LOG_COMPONENTS */

/* Relaxed: a line that races with a change of the settings may follow either. */
static atomic_bool info_on = true;
static atomic_bool warning_on = true;
static atomic_bool error_on = true;
static atomic_int escape_on = -1; /* not decided yet */
static atomic_uint verbose_level;
static atomic_uint verbose_most; /* the highest of verbose_level and all components */
static atomic_int format_now;
static atomic_int fd_now = LOG_FD_STANDARD;

/* The level of a component plus 1; 0 = as verbose_level. */
static atomic_uint component_level[LOG_COMPONENT_COUNT];

static _Thread_local char context_id[LOG_CONTEXT_BYTES];
static _Thread_local uint32_t context_requests;

static bool escapes(void)
{
    int on = atomic_load_explicit(&escape_on, memory_order_relaxed);
    if (on >= 0)
        return on;
    const char *wish = getenv("TRITON_SERVER_ESCAPE_LOG_MESSAGES");
    on = !wish || strcmp(wish, "0") != 0;
    atomic_store_explicit(&escape_on, on, memory_order_relaxed);
    return on;
}

struct log_settings log_get(void)
{
    return (struct log_settings){
        .info = atomic_load_explicit(&info_on, memory_order_relaxed),
        .warning = atomic_load_explicit(&warning_on, memory_order_relaxed),
        .error = atomic_load_explicit(&error_on, memory_order_relaxed),
        .escape = escapes(),
        .verbose = atomic_load_explicit(&verbose_level, memory_order_relaxed),
        .format = (enum log_format)atomic_load_explicit(&format_now, memory_order_relaxed),
        .fd = atomic_load_explicit(&fd_now, memory_order_relaxed),
    };
}

static void find_most(void)
{
    unsigned most = atomic_load_explicit(&verbose_level, memory_order_relaxed);
    for (size_t i = 0; i < LOG_COMPONENT_COUNT; i++) {
        unsigned own = atomic_load_explicit(&component_level[i], memory_order_relaxed);
        most = own > most + 1 ? own - 1 : most;
    }
    atomic_store_explicit(&verbose_most, most, memory_order_relaxed);
}

void log_set(const struct log_settings *settings)
{
    atomic_store_explicit(&info_on, settings->info, memory_order_relaxed);
    atomic_store_explicit(&warning_on, settings->warning, memory_order_relaxed);
    atomic_store_explicit(&error_on, settings->error, memory_order_relaxed);
    atomic_store_explicit(&escape_on, settings->escape, memory_order_relaxed);
    atomic_store_explicit(&verbose_level, settings->verbose, memory_order_relaxed);
    atomic_store_explicit(&format_now, (int)settings->format, memory_order_relaxed);
    atomic_store_explicit(&fd_now, settings->fd, memory_order_relaxed);
    find_most();
}

/* The place in LOG_COMPONENTS, or LOG_COMPONENT_COUNT. */
static uint32_t component_at(const char *name, size_t len)
{
    const char *at = LOG_COMPONENTS;
    for (uint32_t i = 0; i < LOG_COMPONENT_COUNT; i++) {
        size_t n = strcspn(at, ",");
        if (n == len && memcmp(at, name, len) == 0)
            return i;
        at += n + 2;
    }
    return LOG_COMPONENT_COUNT;
}

bool log_component_known(const char *name, size_t len)
{
    return component_at(name, len) < LOG_COMPONENT_COUNT;
}

void log_component_set(const char *name, uint32_t verbose)
{
    uint32_t i = component_at(name, strlen(name));
    if (i == LOG_COMPONENT_COUNT)
        return;
    /* LOG_AS_GENERAL plus 1 is 0. */
    atomic_store_explicit(&component_level[i], verbose + 1, memory_order_relaxed);
    find_most();
}

/* The folder that a source file lies in. */
static void folder_of(const char *file, const char **ret, size_t *ret_len)
{
    const char *slash = strrchr(file, '/');
    const char *start = slash ? slash : file;
    while (start > file && start[-1] != '/')
        start--;
    *ret = start;
    *ret_len = slash ? (size_t)(slash - start) : 0;
}

static uint32_t level_of(uint32_t component)
{
    unsigned own = component < LOG_COMPONENT_COUNT
                       ? atomic_load_explicit(&component_level[component], memory_order_relaxed)
                       : 0;
    return own ? own - 1 : atomic_load_explicit(&verbose_level, memory_order_relaxed);
}

bool log_site_verbose(struct log_site *site, const char *file, uint32_t n)
{
    uint32_t found = atomic_load_explicit(&site->component, memory_order_relaxed);
    if (!found) {
        const char *folder;
        size_t len;
        folder_of(file, &folder, &len);
        uint32_t at = component_at(folder, len);
        found = at < LOG_COMPONENT_COUNT ? at + 2 : 1;
        atomic_store_explicit(&site->component, found, memory_order_relaxed);
    }
    return level_of(found >= 2 ? found - 2 : LOG_COMPONENT_COUNT) >= n;
}

bool log_verbose_enabled(uint32_t n)
{
    return atomic_load_explicit(&verbose_most, memory_order_relaxed) >= n;
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
        return level_of(BACKENDS_AT) >= 1;
    }
    return false;
}

void log_context(const char *first_id, uint32_t requests)
{
    size_t i = 0;
    for (; first_id[i] && i < LOG_CONTEXT_BYTES - 1; i++)
        context_id[i] = first_id[i];
    context_id[i] = '\0';
    context_requests = requests;
}

void log_context_get(const char **ret_first_id, uint32_t *ret_requests)
{
    *ret_first_id = context_id;
    *ret_requests = context_requests;
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

/* One write a line keeps lines whole; a log that cannot be written must not stop the server. */
static void write_line(enum log_level level, const struct strbuf *sb)
{
    int fd = atomic_load_explicit(&fd_now, memory_order_relaxed);
    if (fd == LOG_FD_STANDARD)
        fd = level == LOG_LEVEL_WARN || level == LOG_LEVEL_ERROR ? STDERR_FILENO : STDOUT_FILENO;
    ssize_t ignored = write(fd, sb->data, sb->len);
    (void)ignored;
}

static void put_entry(struct log_site *site, struct log_entry *entry, const char *file)
{
    clock_gettime(CLOCK_REALTIME, &entry->time);
    if (!site_admits(site, (uint32_t)entry->time.tv_sec, &entry->held))
        return;
    const char *slash = strrchr(file, '/');
    entry->file = slash ? slash + 1 : file;
    folder_of(file, &entry->component, &entry->component_len);
    entry->format = (enum log_format)atomic_load_explicit(&format_now, memory_order_relaxed);
    entry->escape = escapes();
    entry->request_id = context_requests == 1 ? context_id : NULL;
    struct strbuf sb = STRBUF_INIT;
    log_text_put(&sb, entry);
    write_line(entry->level, &sb);
    strbuf_fini(&sb);
}

void log_line(struct log_site *site, enum log_level level, const char *file, int line,
              const char *fmt, ...)
{
    char text[LINE_BYTES];
    char *longer = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len >= LINE_BYTES) {
        longer = mem_alloc(MOST_BYTES);
        va_start(args, fmt);
        vsnprintf(longer, MOST_BYTES, fmt, args);
        va_end(args);
    }
    struct log_entry entry = {.level = level, .line = line, .message = longer ? longer : text};
    put_entry(site, &entry, file);
    mem_free(longer);
}

void log_table(struct log_site *site, enum log_level level, const char *file, int line,
               const char *text)
{
    struct log_entry entry = {.level = level, .line = line, .message = text, .table = true};
    put_entry(site, &entry, file);
}
