#include "server/embed.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/file.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "repo/repo.h"
#include "server/options/options_row.h"
#include "server/server.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS_MAGIC 0x454f5054u

/* A call of embed_options_set. The calls are repeated for each server that is made from the
 * options. */
struct setting {
    const struct options_row *row;
    char *value;
};

struct embed_options {
    uint32_t magic;
    struct options checked; /* used to check every setting */
    struct setting *settings;
    size_t count;
};

/* What a server in a host program has in addition. */
struct embed {
    struct options options;              /* owns the strings of the server's options */
    _Atomic(uint32_t) exit_timeout_secs; /* relaxed: it orders nothing */
    /* rank REPO, because a thread is started under it; guards the fields below */
    struct mutex lock;
    struct mutex_cond changed;
    struct thread *stopper;
    bool stopped;
};

struct embed_options *embed_options_new(void)
{
    struct embed_options *o = MEM_NEW(struct embed_options);
    o->magic = OPTIONS_MAGIC;
    options_defaults(&o->checked);
    return o;
}

void embed_options_free(struct embed_options *o)
{
    if (!o)
        return;
    options_fini(&o->checked);
    for (size_t i = 0; i < o->count; i++)
        mem_free(o->settings[i].value);
    mem_free(o->settings);
    o->magic = 0;
    mem_free(o);
}

struct embed_options *embed_options_of(const void *handle)
{
    struct embed_options *o = (struct embed_options *)(uintptr_t)handle;
    return o && o->magic == OPTIONS_MAGIC ? o : NULL;
}

/* Opens the log file of the process. It stays open, because any thread may write to it. */
static struct err *set_log_file(struct log_settings *s, const char *path)
{
    int fd = LOG_FD_STANDARD;
    struct err *e = *path ? file_append(path, &fd) : NULL;
    if (!e)
        s->fd = fd;
    return e;
}

static struct err *apply_log(const struct options *o, const char *name, const char *value)
{
    struct log_settings s = log_get();
    struct err *e = NULL;
    if (strcmp(name, "log-file") == 0)
        e = set_log_file(&s, value);
    else if (strcmp(name, "log-info") == 0)
        s.info = o->log_info;
    else if (strcmp(name, "log-warning") == 0)
        s.warning = o->log_warning;
    else if (strcmp(name, "log-error") == 0)
        s.error = o->log_error;
    else if (strcmp(name, "log-verbose") == 0)
        s.verbose = o->log_verbose;
    else if (strcmp(name, "log-format") == 0)
        s.format = o->log_format;
    if (!e)
        log_set(&s);
    return e;
}

struct err *embed_options_set(struct embed_options *o, const char *name, const char *value)
{
    const struct options_row *row = options_row_find(name, strlen(name));
    bool log = strncmp(name, "log-", 4) == 0;
    if (log && strcmp(name, "log-file") == 0 && !*value)
        return apply_log(&o->checked, name, value);
    if (!row)
        return err_new(STATUS_UNSUPPORTED, "option '%s' is not supported", name);
    char *copy = mem_strdup(value);
    struct err *e = options_value_set(row, copy, &o->checked);
    if (!e && log)
        e = apply_log(&o->checked, name, copy);
    if (e) {
        mem_free(copy);
        return e;
    }
    o->settings = mem_realloc(o->settings, (o->count + 1) * sizeof(*o->settings));
    o->settings[o->count++] = (struct setting){.row = row, .value = copy};
    return NULL;
}

struct err *embed_options_setf(struct embed_options *o, const char *name, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text))
        return err_new(STATUS_INVALID_ARG, "option '%s': expected at most %zu bytes", name,
                       sizeof(text) - 1);
    return embed_options_set(o, name, text);
}

/* Copies the options, with their own strings. The settings of the log are already in effect. */
static struct err *copy_options(const struct embed_options *from, struct options *to)
{
    options_defaults(to);
    to->allow_library_upload = true; /* the caller is code of this process */
    for (size_t i = 0; i < from->count; i++) {
        const struct setting *s = &from->settings[i];
        struct err *e =
            options_value_set(s->row, options_value_keep(to, s->value, strlen(s->value)), to);
        if (e)
            return e;
    }
    to->auto_complete_config = !to->disable_auto_complete && !to->strict_model_config;
    to->loop_threads = 1; /* without front ends the loop only does housekeeping */
    if (!to->repository_count)
        return err_new(STATUS_INVALID_ARG, "--model-repository must be specified");
    return NULL;
}

static void embed_fini(struct embed *m)
{
    options_fini(&m->options);
    mutex_cond_fini(&m->changed);
    mutex_fini(&m->lock);
    mem_free(m);
}

static struct err *embed_start(struct embed *m, struct server **ret)
{
    struct server *s = NULL;
    struct err *e = server_new(&m->options, &s);
    if (e)
        return e;
    e = server_start(s);
    if (!e) {
        s->embed = m;
        e = server_load(s);
    }
    if (!e)
        server_serve(s);
    if (e) {
        server_stop(s);
        server_free(s);
        return e;
    }
    *ret = s;
    return NULL;
}

struct err *embed_new(const struct embed_options *options, struct server **ret)
{
    struct embed *m = MEM_NEW(struct embed);
    mutex_init(&m->lock, MUTEX_RANK_REPO);
    mutex_cond_init(&m->changed);
    struct err *e = copy_options(options, &m->options);
    atomic_init(&m->exit_timeout_secs, m->options.exit_timeout_secs);
    if (!e)
        e = embed_start(m, ret);
    if (e)
        embed_fini(m);
    return e;
}

struct server *embed_server_of(const void *handle)
{
    struct server *s = (struct server *)(uintptr_t)handle;
    return s && s->magic == SERVER_MAGIC ? s : NULL;
}

static struct err *not_ours(void)
{
    return err_new(STATUS_UNSUPPORTED, "this server belongs to its process, which stops it");
}

static void embed_stopper(void *arg)
{
    struct server *s = arg;
    struct embed *m = s->embed;
    server_stop(s);
    mutex_lock(&m->lock);
    m->stopped = true;
    mutex_cond_broadcast(&m->changed);
    mutex_unlock(&m->lock);
}

/* Starts the thread that stops the server. Caller holds the lock. */
static struct err *begin_stop(struct server *s, struct embed *m)
{
    if (m->stopped || m->stopper)
        return NULL;
    return thread_start("stopper", embed_stopper, s, &m->stopper);
}

struct err *embed_stop(struct server *s)
{
    struct embed *m = s->embed;
    if (!m)
        return not_ours();
    time_ns until = clock_now_ns() + TIME_S(atomic_load(&m->exit_timeout_secs));
    mutex_lock(&m->lock);
    struct err *e = begin_stop(s, m);
    while (!e && !m->stopped && clock_now_ns() < until)
        mutex_cond_wait_until(&m->changed, &m->lock, until);
    bool stopped = m->stopped;
    mutex_unlock(&m->lock);
    if (e || stopped)
        return e;
    repo_say_left(s->repo);
    return err_new(STATUS_INTERNAL, "Exit timeout expired. Exiting immediately.");
}

struct err *embed_free(struct server *s)
{
    if (!s)
        return NULL;
    struct err *e = embed_stop(s);
    if (e)
        return e;
    struct embed *m = s->embed;
    thread_join(m->stopper);
    server_free(s);
    embed_fini(m);
    return NULL;
}

struct err *embed_set_exit_timeout(struct server *s, uint32_t secs)
{
    if (!s->embed)
        return not_ours();
    atomic_store(&s->embed->exit_timeout_secs, secs);
    return NULL;
}
