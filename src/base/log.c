#include "base/log.h"

#include "base/err.h"
#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_BURST  1000u /* lines per second and call site */
#define LINE_BYTES 4096  /* most messages are shorter */
#define MOST_BYTES 65536 /* longer ones are cut */

/* All settings except the descriptor are in one word, so that a line never mixes old and new
 * settings. Relaxed: a line that races with a change may follow either. */
#define INFO_BIT    ((uint64_t)1 << 32) /* below: the verbose level */
#define WARNING_BIT ((uint64_t)1 << 33)
#define ERROR_BIT   ((uint64_t)1 << 34)
#define PLAIN_BIT   ((uint64_t)1 << 35) /* messages are written unescaped */
/* messages are escaped; if neither bit is set, this is not decided yet */
#define ESCAPING_BIT ((uint64_t)1 << 36)
#define FORMAT_SHIFT 40
static _Atomic uint64_t word_now = INFO_BIT | WARNING_BIT | ERROR_BIT;
static atomic_int fd_now = LOG_FD_STANDARD;
/* The highest of the general level and the levels of all components. */
static atomic_uint verbose_most;

/* The level of a component plus 1; 0 = use the general level. */
static atomic_uint component_level[LOG_COMPONENT_COUNT];

/* A spin lock for changes of the settings, which take only a few stores. */
static atomic_flag changing = ATOMIC_FLAG_INIT;

/* The function that writes lines. Set before there are other threads. */
static log_write_fn *write_with;

static _Thread_local char context_id[LOG_CONTEXT_BYTES];
static _Thread_local uint32_t context_requests;
static _Thread_local struct log_work context_work;

static uint64_t log_word(void)
{
    uint64_t now = atomic_load_explicit(&word_now, memory_order_relaxed);
    if (now & (PLAIN_BIT | ESCAPING_BIT))
        return now;
    const char *wish = getenv("TRITON_SERVER_ESCAPE_LOG_MESSAGES");
    uint64_t bit = wish && strcmp(wish, "0") == 0 ? PLAIN_BIT : ESCAPING_BIT;
    return atomic_fetch_or_explicit(&word_now, bit, memory_order_relaxed) | bit;
}

static struct log_settings settings_of(uint64_t now)
{
    return (struct log_settings){
        .info = (now & INFO_BIT) != 0,
        .warning = (now & WARNING_BIT) != 0,
        .error = (now & ERROR_BIT) != 0,
        .escape = (now & ESCAPING_BIT) != 0,
        .verbose = (uint32_t)now,
        .format = (enum log_format)(now >> FORMAT_SHIFT),
        .fd = atomic_load_explicit(&fd_now, memory_order_relaxed),
    };
}

struct log_settings log_get(void)
{
    return settings_of(log_word());
}

static void begin_change(void)
{
    while (atomic_flag_test_and_set_explicit(&changing, memory_order_acquire))
        sched_yield();
}

static void end_change(void)
{
    atomic_flag_clear_explicit(&changing, memory_order_release);
}

/* Updates verbose_most. The caller holds `changing`. */
static void find_most(void)
{
    unsigned most = (uint32_t)atomic_load_explicit(&word_now, memory_order_relaxed);
    for (size_t i = 0; i < LOG_COMPONENT_COUNT; i++) {
        unsigned own = atomic_load_explicit(&component_level[i], memory_order_relaxed);
        most = own && own - 1 > most ? own - 1 : most;
    }
    atomic_store_explicit(&verbose_most, most, memory_order_relaxed);
}

/* Publishes the settings. The caller holds `changing`. */
static void log_set_word(const struct log_settings *s)
{
    uint64_t next = s->verbose | (s->info ? INFO_BIT : 0) | (s->warning ? WARNING_BIT : 0) |
                    (s->error ? ERROR_BIT : 0) | (s->escape ? ESCAPING_BIT : PLAIN_BIT) |
                    (uint64_t)s->format << FORMAT_SHIFT;
    atomic_store_explicit(&word_now, next, memory_order_relaxed);
    find_most();
}

void log_set(const struct log_settings *settings)
{
    begin_change();
    atomic_store_explicit(&fd_now, settings->fd, memory_order_relaxed);
    log_set_word(settings);
    end_change();
}

void log_update(const struct log_settings *to, unsigned what, const struct log_levels *levels)
{
    begin_change();
    struct log_settings s = log_get();
    if (what & LOG_UPDATE_INFO)
        s.info = to->info;
    if (what & LOG_UPDATE_WARNING)
        s.warning = to->warning;
    if (what & LOG_UPDATE_ERROR)
        s.error = to->error;
    if (what & LOG_UPDATE_VERBOSE)
        s.verbose = to->verbose;
    if (what & LOG_UPDATE_FORMAT)
        s.format = to->format;
    /* LOG_AS_GENERAL plus 1 wraps to 0. */
    for (size_t i = 0; levels && i < LOG_COMPONENT_COUNT; i++)
        atomic_store_explicit(&component_level[i], levels->of[i] + 1, memory_order_relaxed);
    log_set_word(&s);
    end_change();
}

/* The index in LOG_COMPONENTS, or LOG_COMPONENT_COUNT. */
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
    begin_change();
    atomic_store_explicit(&component_level[i], verbose + 1, memory_order_relaxed);
    find_most();
    end_change();
}

struct log_levels log_levels_get(void)
{
    struct log_levels levels;
    for (size_t i = 0; i < LOG_COMPONENT_COUNT; i++)
        levels.of[i] = atomic_load_explicit(&component_level[i], memory_order_relaxed) - 1;
    return levels;
}

/* Parses a level in digits; false if it is invalid. */
static bool parse_level(const char *at, size_t len, uint32_t *ret)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (at[i] < '0' || at[i] > '9' || (n = n * 10 + (uint64_t)(at[i] - '0')) >= LOG_AS_GENERAL)
            return false;
    }
    *ret = (uint32_t)n;
    return len > 0;
}

struct err *log_levels_parse(const char *text, size_t len, struct log_levels *ret)
{
    struct log_levels levels;
    for (size_t i = 0; i < LOG_COMPONENT_COUNT; i++)
        levels.of[i] = LOG_AS_GENERAL;
    const char *end = text + len;
    for (const char *at = text; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        const char *name_end = equals ? equals : stop;
        uint32_t i = component_at(at, (size_t)(name_end - at));
        if (i == LOG_COMPONENT_COUNT)
            return err_new(STATUS_INVALID_ARG, "no component '%.*s', there are " LOG_COMPONENTS,
                           (int)(name_end - at < 64 ? name_end - at : 64), at);
        if (!equals || !parse_level(equals + 1, (size_t)(stop - equals - 1), &levels.of[i]))
            return err_new(STATUS_INVALID_ARG, "component '%.*s': expected <component>=<level>",
                           (int)(name_end - at), at);
        at = comma ? comma + 1 : end;
    }
    *ret = levels;
    return NULL;
}

void log_levels_put(const struct log_levels *levels, struct strbuf *sb)
{
    const char *at = LOG_COMPONENTS;
    const char *comma = "";
    for (size_t i = 0; i < LOG_COMPONENT_COUNT; i++) {
        size_t n = strcspn(at, ",");
        if (levels->of[i] != LOG_AS_GENERAL) {
            strbuf_printf(sb, "%s%.*s=%u", comma, (int)n, at, levels->of[i]);
            comma = ",";
        }
        at += n + 2;
    }
}

/* The component of a source file: the folder below src/, or, for other files, the folder that
 * contains it. */
static void component_of_file(const char *file, const char **ret, size_t *ret_len)
{
    const char *slash = strrchr(file, '/');
    const char *start = slash ? slash : file;
    while (start > file && start[-1] != '/')
        start--;
    *ret = start;
    *ret_len = slash ? (size_t)(slash - start) : 0;
    for (const char *at = file; (at = strstr(at, "src/")); at += 4) {
        size_t len = strcspn(at + 4, "/");
        if ((at == file || at[-1] == '/') && at[4 + len]) {
            *ret = at + 4;
            *ret_len = len;
        }
    }
}

static uint32_t log_level_of(uint32_t component)
{
    unsigned own = component < LOG_COMPONENT_COUNT
                       ? atomic_load_explicit(&component_level[component], memory_order_relaxed)
                       : 0;
    return own ? own - 1 : (uint32_t)atomic_load_explicit(&word_now, memory_order_relaxed);
}

bool log_site_verbose(struct log_site *site, const char *file, uint32_t n)
{
    uint32_t found = atomic_load_explicit(&site->component, memory_order_relaxed);
    if (!found) {
        const char *folder;
        size_t len;
        component_of_file(file, &folder, &len);
        uint32_t at = component_at(folder, len);
        found = at < LOG_COMPONENT_COUNT ? at + 2 : 1;
        atomic_store_explicit(&site->component, found, memory_order_relaxed);
    }
    return log_level_of(found >= 2 ? found - 2 : LOG_COMPONENT_COUNT) >= n;
}

bool log_verbose_enabled(uint32_t n)
{
    return atomic_load_explicit(&verbose_most, memory_order_relaxed) >= n;
}

bool log_enabled(enum log_level level)
{
    uint64_t now = atomic_load_explicit(&word_now, memory_order_relaxed);
    switch (level) {
    case LOG_LEVEL_INFO:
        return (now & INFO_BIT) != 0;
    case LOG_LEVEL_WARN:
        return (now & WARNING_BIT) != 0;
    case LOG_LEVEL_ERROR:
        return (now & ERROR_BIT) != 0;
    case LOG_LEVEL_VERBOSE:
        return log_level_of(LOG_COMPONENT_BACKENDS) >= 1;
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

struct log_work log_work_set(struct log_work now)
{
    struct log_work was = context_work;
    context_work = now;
    return was;
}

struct log_work log_work_get(void)
{
    return context_work;
}

/* Begins a new second. Returns how many lines were held back in the one before. */
static uint32_t begin_second(struct log_site *site, uint32_t second)
{
    uint32_t last = atomic_load_explicit(&site->second, memory_order_relaxed);
    if (last == second || !atomic_compare_exchange_strong(&site->second, &last, second))
        return 0;
    uint32_t lines = atomic_exchange(&site->lines, 0);
    return lines > LOG_BURST ? lines - LOG_BURST : 0;
}

/* Counts a line. Returns false if it must be held back. */
static bool site_admits(struct log_site *site)
{
    return atomic_fetch_add_explicit(&site->lines, 1, memory_order_relaxed) < LOG_BURST;
}

void log_set_writer(log_write_fn *fn)
{
    write_with = fn;
}

/* A program around the server may not ignore SIGPIPE; a pipe that nobody reads any more must not
 * end it. */
static void write_quietly(int fd, const char *line, size_t len)
{
    static const struct timespec now = {0};
    sigset_t pipe;
    sigset_t before;
    sigset_t pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    if (write(fd, line, len) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Each line is one write, which keeps it whole. An error is ignored: a log that cannot be
 * written must not stop the server. */
static void log_write_line(int fd, enum log_level level, const struct strbuf *sb)
{
    if (fd == LOG_FD_STANDARD)
        fd = level == LOG_LEVEL_WARN || level == LOG_LEVEL_ERROR ? STDERR_FILENO : STDOUT_FILENO;
    if (write_with) {
        write_with(fd, sb->data, sb->len);
        return;
    }
    write_quietly(fd, sb->data, sb->len);
}

static void write_entry(struct log_entry *entry, const char *file)
{
    const char *slash = strrchr(file, '/');
    entry->file = slash ? slash + 1 : file;
    component_of_file(file, &entry->component, &entry->component_len);
    struct log_settings now = log_get();
    entry->format = now.format;
    entry->escape = now.escape;
    struct strbuf sb = STRBUF_INIT;
    log_text_put(&sb, entry);
    log_write_line(now.fd, entry->level, &sb);
    strbuf_fini(&sb);
}

/* Sites that held lines back and have not reported it; each is listed once. */
static _Atomic(struct log_site *) silent;

static void list_silent(struct log_site *site)
{
    site->next = atomic_load_explicit(&silent, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&silent, &site->next, site))
        continue;
}

static void note_silent(struct log_site *site, const struct log_entry *entry, const char *file)
{
    if (!site->lasts || atomic_exchange(&site->listed, true))
        return;
    site->file = file;
    site->line = entry->line;
    site->level = entry->level;
    list_silent(site);
}

/* Reports lines held back before this second; 0 = all of them. A line that is held back
 * meanwhile lists its site again. */
static void say_held(uint32_t second, const struct timespec *time)
{
    struct log_site *next;
    for (struct log_site *site = atomic_exchange(&silent, NULL); site; site = next) {
        struct log_entry entry = {.level = site->level, .line = site->line, .time = *time};
        const char *file = site->file;
        char text[80];
        next = site->next;
        if (atomic_load(&site->second) == second) {
            list_silent(site);
            continue;
        }
        atomic_store(&site->listed, false);
        uint32_t held = begin_second(site, second);
        snprintf(text, sizeof(text), "%u lines from here were held back: more than %u in a second",
                 held, LOG_BURST);
        entry.message = text;
        if (held)
            write_entry(&entry, file);
    }
}

void log_say_held(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    say_held(0, &now);
}

static void put_entry(struct log_site *site, struct log_entry *entry, const char *file)
{
    static _Atomic uint32_t said;
    clock_gettime(CLOCK_REALTIME, &entry->time);
    uint32_t second = (uint32_t)entry->time.tv_sec;
    entry->held = begin_second(site, second);
    if (atomic_load_explicit(&silent, memory_order_relaxed) &&
        atomic_exchange(&said, second) != second)
        say_held(second, &entry->time);
    if (!site_admits(site)) {
        note_silent(site, entry, file);
        return;
    }
    entry->request_id = context_requests == 1 ? context_id : NULL;
    write_entry(entry, file);
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
