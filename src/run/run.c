/* The server as a process: options, front ends, models, signals, and the order of stopping. */
#include "run/run.h"

#include "base/build_version.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/bench_command.h"
#include "grpc/api/grpc_methods.h"
#include "grpc/grpc_front.h"
#include "http/api/http_api.h"
#include "http/api/metrics_http.h"
#include "http/http_front.h"
#include "isolate/child/isolate_child.h"
#include "net/forward.h"
#include "net/quota.h"
#include "os/heap.h"
#include "os/process/process.h"
#include "os/process/signals.h"
#include "os/sock_unix.h"
#include "os/thread.h"
#include "repo/repo.h"
#include "run/check_command.h"
#include "run/countdown.h"
#include "run/doctor.h"
#include "run/secure.h"
#include "server/log_files.h"
#include "server/server.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The last quarter of the stopping time, at most this long, is reserved for unloading models,
 * even if connections still wait. */
#define UNLOAD_NS TIME_S(5)

/* How long the last log lines may take if the process ends at once. */
#define LAST_WORDS_NS TIME_MS(500)

struct fronts {
    struct server *server;
    struct http_front *http;
    struct grpc_front *grpc;
    struct http_front *metrics;
    struct secure secure;
    time_ns until; /* when stopping must be over */
    /* when connections are closed on clients that wait still: models are unloaded after it */
    time_ns conn_until;
    /* set when stopping has ended; the signal that follows wakes the main thread */
    atomic_bool stopped;
    int number;             /* the signal that began the stop; 0 = none */
    const char *last_words; /* why the process ends at once */
    struct thread *starter; /* the thread that loads the models; NULL = not started */
    atomic_bool ending;     /* set by the main thread: the starter must log nothing more */
    /* set by the starter: the start has failed; the signal that follows wakes the main thread */
    atomic_bool failed;
};

/* Adds the front end, its address and its option to an error of opening it: the port is in use,
 * or the address is invalid. */
static struct err *name_front_option(struct err *e, const char *front, const char *address)
{
    if (!e)
        return NULL;
    bool port = err_code(e) == STATUS_UNAVAILABLE && !sock_unix_path(address);
    return err_wrap(e, "option --%s-%s", front, port ? "port" : "address");
}

static void say_started(const char *service, const char *address, uint16_t port)
{
    if (sock_unix_path(address))
        LOG_INFO("Started %s at %s", service, address);
    else
        LOG_INFO("Started %s at %s:%u", service, address, port);
}

static struct err *open_fronts(struct fronts *f)
{
    const struct options *o = &f->server->options;
    struct err *e = secure_open(&f->secure, o);
    if (!e && o->allow_grpc)
        e = name_front_option(grpc_front_open(f->server, &grpc_methods_service, o->grpc_address,
                                              o->grpc_port, o->reuse_grpc_port, &f->secure.grpc,
                                              &f->grpc),
                              "grpc", o->grpc_address);
    if (!e && f->grpc)
        say_started("GRPCInferenceService", o->grpc_address, grpc_front_port(f->grpc));
    if (!e && o->allow_http)
        e = name_front_option(http_front_open(f->server, &http_api_service, o->http_address,
                                              o->http_port, o->reuse_http_port, &f->secure.http,
                                              &f->http),
                              "http", o->http_address);
    if (!e && f->http)
        say_started("HTTPService", o->http_address, http_front_port(f->http));
    const char *address = o->metrics_address ? o->metrics_address : o->http_address;
    if (!e && o->allow_metrics)
        e = name_front_option(http_front_open(f->server, &metrics_http_service, address,
                                              o->metrics_port, false, &f->secure.metrics,
                                              &f->metrics),
                              "metrics", address);
    if (!e && f->metrics)
        say_started("Metrics Service", address, http_front_port(f->metrics));
    return e;
}

static void warn_of_few_files(void)
{
    uint64_t most = process_fds().max;
    if (most < RUN_FEW_FILES)
        LOG_WARN(
            "this process may open %" PRIu64 " files, so at most %" PRIu64
            " connections are served at once: raise the limit (ulimit -n 65536, LimitNOFILE=65536 "
            "of a systemd unit, --ulimit nofile=65536 of a container)",
            most, quota_places());
}

static void stop_grpc(void *arg)
{
    struct fronts *f = arg;
    grpc_front_stop(f->grpc, f->conn_until);
}

/* Stops both front ends at the same time, so that a long request of one protocol takes no time
 * from the other protocol's clients. */
static void stop_fronts(struct fronts *f)
{
    struct thread *grpc = NULL;
    err_free(thread_start("stopper-grpc", stop_grpc, f, &grpc));
    http_front_stop(f->http, f->conn_until);
    if (!grpc)
        stop_grpc(f);
    thread_join(grpc);
    http_front_stop(f->metrics, f->conn_until);
}

/* Stops readiness first, then the front ends, then the models, so that every accepted request is
 * answered. */
static void stop_all(void *arg)
{
    struct fronts *f = arg;
    struct countdown countdown;
    server_refuse(f->server);
    countdown_begin(&countdown, f->server->repo, f->http, f->until);
    stop_fronts(f);
    countdown_unload(&countdown);
    thread_join(f->starter); /* a backend that is loading a model cannot be stopped */
    server_unload(f->server);
    grpc_front_close(f->grpc); /* until now new clients were told that the server stops */
    server_stop(f->server);
    countdown_end(&countdown);
    http_front_free(f->http);
    grpc_front_free(f->grpc);
    http_front_free(f->metrics);
    secure_close(&f->secure);
    server_free(f->server);
}

static void stop_main(void *arg)
{
    struct fronts *f = arg;
    if (f->number)
        LOG_INFO("signal %d (%s) received, stopping", f->number, strsignal(f->number));
    stop_all(f);
    atomic_store(&f->stopped, true);
    signals_wake();
}

static void say_last_words(void *arg)
{
    struct fronts *f = arg;
    repo_say_left(f->server->repo);
    LOG_ERROR("%s", f->last_words);
    log_say_held();
    signals_wake();
}

/* Logs why the process ends at once. A separate thread logs it, because the reader of the log
 * may hang. */
static _Noreturn void end_at_once(struct fronts *f, const char *why)
{
    struct thread *thread = NULL;
    f->last_words = why;
    struct err *e = thread_start("last-words", say_last_words, f, &thread);
    if (!e)
        signals_wait(clock_now_ns() + LAST_WORDS_NS);
    _exit(1);
}

/* Stops on another thread, while this thread watches for a second signal and the timeout. Does
 * not return if one of them comes first. */
static void stop_in_time(struct fronts *f)
{
    uint32_t seconds = f->server->options.exit_timeout_secs;
    time_ns now = clock_now_ns();
    time_ns share = TIME_S(seconds) / 4;
    f->until = now + TIME_S(seconds);
    f->conn_until = f->until - (share < UNLOAD_NS ? share : UNLOAD_NS);
    struct thread *thread = NULL;
    struct err *e = thread_start("stopper", stop_main, f, &thread);
    if (e) {
        err_free(e);
        stop_all(f);
        return;
    }
    while (!atomic_load(&f->stopped)) {
        int number = signals_wait(f->until);
        if (atomic_load(&f->stopped))
            break;
        if (number == SIGHUP) {
            log_files_anew();
            continue;
        }
        end_at_once(f, number ? "ended at once by a second signal"
                              : "still not stopped after --exit-timeout-secs: ended at once");
    }
    thread_join(thread);
}

/* SIGHUP, which is waited for only where there are log files or certificates, opens and reads
 * them anew. */
static int wait_for_end(const struct fronts *f)
{
    for (;;) {
        int number = signals_wait(secure_next(&f->secure));
        if (number && number != SIGHUP)
            return number;
        if (number && log_files_any(&f->server->options))
            log_files_anew();
        secure_look(&f->secure, number == SIGHUP);
    }
}

/* Loads the models on a separate thread, so that the main thread sees signals. */
static void starter(void *arg)
{
    struct fronts *f = arg;
    struct err *e = server_load(f->server);
    if (atomic_load(&f->ending)) {
        err_free(e);
    } else if (e) {
        LOG_ERROR("%s", err_message(e));
        err_free(e);
        atomic_store(&f->failed, true);
        signals_wake();
    } else if (server_live(f->server)) {
        log_say_held(); /* lines held back while models were loaded */
        LOG_INFO("server is ready");
    }
}

/* Runs until the end. Returns the exit status. */
static int serve_until_end(struct fronts *f)
{
    int number = wait_for_end(f);
    atomic_store(&f->ending, true);
    if (atomic_load(&f->failed))
        return 1;
    server_refuse(f->server);
    f->number = number;
    return 0;
}

static int serve_fronts(const struct options *o)
{
    struct fronts f = {0};
    struct err *e = server_new(o, &f.server);
    if (e) {
        fprintf(stderr, "nereid: %s\n", err_message(e));
        err_free(e);
        return 1;
    }
    e = server_start(f.server);
    if (!e)
        e = open_fronts(&f);
    if (!e) {
        warn_of_few_files();
        e = thread_start("starter", starter, &f, &f.starter);
    }
    int status = 1;
    if (e) {
        LOG_ERROR("%s", err_message(e));
        err_free(e);
    } else {
        status = serve_until_end(&f);
    }
    stop_in_time(&f);
    return status;
}

static int run_logged(const struct options *o)
{
    signals_block(log_files_any(o) || secure_asked(o));
    struct err *e = log_files_apply(o);
    if (e) {
        fprintf(stderr, "nereid: %s\n", err_message(e));
        err_free(e);
        return 1;
    }
    int status = serve_fronts(o);
    log_say_held();
    log_files_close();
    return status;
}

/* Refuses two front ends at the same Unix socket, of which only one could be reached, or at the
 * same port: where both may share it, the kernel would spread connections over both. */
static struct err *check_addresses(const struct options *o)
{
    const struct {
        const char *option;
        bool open;
        const char *address;
        const char *port_option;
        uint16_t port;
    } fronts[] = {
        {"http-address", o->allow_http, o->http_address, "http-port", o->http_port},
        {"grpc-address", o->allow_grpc, o->grpc_address, "grpc-port", o->grpc_port},
        {"metrics-address", o->allow_metrics,
         o->metrics_address ? o->metrics_address : o->http_address, "metrics-port",
         o->metrics_port},
    };
    for (size_t i = 1; i < sizeof(fronts) / sizeof(*fronts); i++)
        for (size_t k = 0; k < i; k++) {
            if (!fronts[i].open || !fronts[k].open ||
                strcmp(fronts[i].address, fronts[k].address) != 0)
                continue;
            if (sock_unix_path(fronts[i].address))
                return err_new(STATUS_INVALID_ARG,
                               "option --%s: expected an address of its own, found '%s', which is "
                               "that of --%s",
                               fronts[i].option, fronts[i].address, fronts[k].option);
            if (fronts[i].port && fronts[i].port == fronts[k].port)
                return err_new(STATUS_INVALID_ARG,
                               "option --%s: expected a port of its own, found %u, which is that "
                               "of --%s",
                               fronts[i].port_option, fronts[i].port, fronts[k].port_option);
        }
    return NULL;
}

/* Checks a pattern before anything is opened; the front ends compile it again. */
static struct err *check_pattern(bool open, const char *option, const char *pattern)
{
    struct forward *f = NULL;
    struct err *e = open ? forward_new(option, pattern, &f) : NULL;
    forward_free(f);
    return e;
}

struct err *run_check_fronts(const struct options *o)
{
    struct err *e = check_addresses(o);
    if (!e)
        e = check_pattern(o->allow_http, "http-header-forward-pattern", o->http_header_pattern);
    if (!e)
        e = check_pattern(o->allow_grpc, "grpc-header-forward-pattern", o->grpc_header_pattern);
    return e;
}

static struct err *check_options(const struct options *o)
{
    if (!o->repository_count)
        return err_new(STATUS_INVALID_ARG, "--model-repository must be specified, see --help");
    return run_check_fronts(o);
}

int run_server(int argc, char **argv)
{
    heap_begin();
    if (isolate_child_is(argc, argv))
        return isolate_child_run();
    if (argc > 1 && strcmp(argv[1], "check") == 0)
        return check_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "doctor") == 0)
        return doctor_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        return bench_command(argc - 1, argv + 1);
    struct options *o = mem_alloc(sizeof(*o));
    enum options_action action = OPTIONS_RUN;
    options_defaults(o);
    struct err *e = options_parse(argc, argv, o, &action);
    if (!e && action == OPTIONS_RUN)
        e = check_options(o);
    int status = 1;
    if (e) {
        fprintf(stderr, "nereid: %s\n", err_message(e));
        err_free(e);
    } else if (action == OPTIONS_VERSION) {
        puts("nereid " BUILD_VERSION);
        status = 0;
    } else if (action == OPTIONS_HELP) {
        char *help = options_help();
        fputs(help, stdout);
        mem_free(help);
        status = 0;
    } else {
        status = run_logged(o);
    }
    options_fini(o);
    mem_free(o);
    return status;
}
