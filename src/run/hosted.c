#include "run/hosted.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "grpc/grpc_front.h"
#include "http/http_front.h"
#include "nereid_private.h"
#include "os/mutex.h"
#include "os/sock.h"
#include "os/thread.h"
#include "repo/repo.h"
#include "run/fronts.h"
#include "server/log_files.h"
#include "server/options/options_row.h"
#include "server/server.h"

#include <stdatomic.h>
#include <string.h>

struct hosted {
    struct options options;
    char **argv; /* the strings of the options lie in it */
    struct fronts fronts;
    time_ns until; /* when stopping must be over */
    bool has_log;  /* the log of the process is set up by this server */
    /* rank REPO, because a thread is started under it; guards `stopping` and `stopped` */
    struct mutex lock;
    struct mutex_cond changed;
    struct thread *keeper; /* NULL = no certificates and keys to look at */
    struct thread *stopper;
    bool stopping;
    bool stopped;
};

/* A server that is open has set up the log. Orders nothing else. */
static atomic_bool log_taken;

static char **hosted_copy_strings(int argc, char *const *argv)
{
    char **copy = mem_alloc(((size_t)argc + 1) * sizeof(*copy));
    for (int i = 0; i < argc; i++)
        copy[i] = mem_strdup(argv[i]);
    copy[argc] = NULL;
    return copy;
}

void hosted_free(struct hosted *h)
{
    server_free(h->fronts.server);
    if (h->has_log) {
        log_say_held();
        log_files_close();
        atomic_store(&log_taken, false);
    }
    options_fini(&h->options);
    for (char **each = h->argv; *each; each++)
        mem_free(*each);
    mem_free(h->argv);
    mutex_cond_fini(&h->changed);
    mutex_fini(&h->lock);
    mem_free(h);
}

static struct err *hosted_set(struct options *o, const char *name, const char *value)
{
    const struct options_row *row = options_row_find(name, strlen(name));
    return options_value_set(row, options_value_keep(o, value, strlen(value)), o);
}

static bool hosted_names_a_python(const struct options *o)
{
    for (size_t i = 0; i < o->backend_setting_count; i++)
        if (strcmp(o->backend_settings[i].backend, "python") == 0 &&
            strcmp(o->backend_settings[i].key, "python-executable") == 0)
            return true;
    return false;
}

static bool hosted_loads_all(const struct options *o)
{
    for (size_t i = 0; i < o->load_model_count; i++)
        if (strcmp(o->load_models[i], "*") == 0)
            return true;
    return false;
}

static struct err *hosted_add(struct options *o, const struct hosted_more *more)
{
    struct err *e = NULL;
    if (more->repository)
        e = hosted_set(o, "model-repository", more->repository);
    bool by_name =
        more->names && o->control_mode == OPTIONS_CONTROL_EXPLICIT && !hosted_loads_all(o);
    for (const char *const *name = by_name ? more->names : NULL; name && *name && !e; name++)
        e = hosted_set(o, "load-model", *name);
    if (e || !more->python || hosted_names_a_python(o))
        return e;
    struct strbuf setting = {0};
    strbuf_printf(&setting, "python,python-executable=%s", more->python);
    e = hosted_set(o, "backend-config", setting.data);
    strbuf_fini(&setting);
    return e;
}

static struct err *read_options(struct hosted *h, int argc, const struct hosted_more *more)
{
    enum options_action action = OPTIONS_RUN;
    options_defaults(&h->options);
    struct err *e = options_parse(argc, h->argv, &h->options, &action);
    if (!e && action != OPTIONS_RUN)
        e = err_new(STATUS_INVALID_ARG, "--help and --version are for the command line");
    if (!e)
        e = hosted_add(&h->options, more);
    if (!e && !h->options.repository_count)
        e = err_new(STATUS_INVALID_ARG, "--model-repository must be specified");
    return e ? e : fronts_check(&h->options);
}

static struct err *take_log(struct hosted *h)
{
    if (atomic_exchange(&log_taken, true))
        return NULL;
    struct err *e = log_files_apply(&h->options);
    h->has_log = !e;
    if (e)
        atomic_store(&log_taken, false);
    return e;
}

/* Looks at the files of certificates and keys, which the process does on its main thread. */
static void hosted_keeper(void *arg)
{
    struct hosted *h = arg;
    mutex_lock(&h->lock);
    while (!h->stopping) {
        mutex_cond_wait_until(&h->changed, &h->lock, secure_next(&h->fronts.secure));
        mutex_unlock(&h->lock);
        secure_look(&h->fronts.secure, false);
        mutex_lock(&h->lock);
    }
    mutex_unlock(&h->lock);
}

static void hosted_end(struct hosted *h)
{
    mutex_lock(&h->lock);
    h->stopping = true;
    mutex_cond_broadcast(&h->changed);
    mutex_unlock(&h->lock);
    thread_join(h->keeper);
    fronts_end(&h->fronts, NULL, h->until);
}

static struct err *hosted_start(struct hosted *h)
{
    struct err *e = server_new(&h->options, &h->fronts.server);
    if (e)
        return e;
    e = server_start(h->fronts.server);
    if (!e)
        e = fronts_open(&h->fronts);
    if (!e && secure_asked(&h->options))
        e = thread_start("keeper", hosted_keeper, h, &h->keeper);
    if (!e)
        e = fronts_load(&h->fronts);
    if (e) {
        h->until = clock_now_ns() + TIME_S(h->options.exit_timeout_secs);
        hosted_end(h);
    }
    return e;
}

struct err *hosted_open(int argc, char *const *argv, const struct hosted_more *more,
                        struct hosted **ret)
{
    struct hosted *h = MEM_NEW(struct hosted);
    h->argv = hosted_copy_strings(argc, argv);
    mutex_init(&h->lock, MUTEX_RANK_REPO);
    mutex_cond_init(&h->changed);
    sock_leave_at_fork();
    struct err *e = read_options(h, argc, more);
    if (!e)
        e = take_log(h);
    if (!e)
        e = hosted_start(h);
    if (e) {
        hosted_free(h);
        return e;
    }
    *ret = h;
    return NULL;
}

struct server *hosted_server(const struct hosted *h)
{
    return h->fronts.server;
}

void hosted_ports(const struct hosted *h, uint16_t ret_ports[3])
{
    const struct fronts *f = &h->fronts;
    ret_ports[0] = f->http ? http_front_port(f->http) : 0;
    ret_ports[1] = f->grpc ? grpc_front_port(f->grpc) : 0;
    ret_ports[2] = f->metrics ? http_front_port(f->metrics) : 0;
}

static void hosted_stopper(void *arg)
{
    struct hosted *h = arg;
    hosted_end(h);
    mutex_lock(&h->lock);
    h->stopped = true;
    mutex_cond_broadcast(&h->changed);
    mutex_unlock(&h->lock);
}

struct err *hosted_stop(struct hosted *h)
{
    h->until = clock_now_ns() + TIME_S(h->options.exit_timeout_secs);
    mutex_lock(&h->lock);
    struct err *e = thread_start("stopper", hosted_stopper, h, &h->stopper);
    while (!e && !h->stopped && clock_now_ns() < h->until)
        mutex_cond_wait_until(&h->changed, &h->lock, h->until);
    bool stopped = h->stopped;
    mutex_unlock(&h->lock);
    if (!e && !stopped) {
        repo_say_left(h->fronts.server->repo);
        e = err_new(
            STATUS_INTERNAL,
            "the server has not stopped within %u seconds "
            "(exit-timeout-secs): a model does not end, or its requests are held; the log names it",
            (unsigned)h->options.exit_timeout_secs);
    }
    if (e)
        return e;
    thread_join(h->stopper);
    return NULL;
}
