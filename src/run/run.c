/* The server as a process: options, front ends, models, signals, and the order of stopping. */
#include "run/run.h"

#include "base/build_version.h"
#include "base/err_tell.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/bench_command.h"
#include "isolate/child/isolate_child.h"
#include "os/files/tree.h"
#include "os/heap.h"
#include "os/process/notify.h"
#include "os/process/process.h"
#include "os/process/signals.h"
#include "os/process/standard.h"
#include "os/thread.h"
#include "repo/repo.h"
#include "run/check_command.h"
#include "run/doctor.h"
#include "run/fronts.h"
#include "run/migrate.h"
#include "server/log_files.h"
#include "server/quota.h"
#include "server/server.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How long the last log lines may take if the process ends at once. */
#define LAST_WORDS_NS TIME_MS(500)

/* GNU timeout sends a signal to its child and to the group, so the child gets it twice. */
#define REPEAT_NS TIME_S(1)

/* A service manager that misses that the server is ready ends it. */
#define MANAGER_SECONDS 10

/* How far a stop is. The models are unloaded before RUN_FREES. */
enum run_stage {
    RUN_STOPPING,
    RUN_FREES,   /* the server is being freed: nobody else uses it */
    RUN_AT_ONCE, /* the process ends without it */
};

struct process {
    struct fronts fronts;
    time_ns until; /* when stopping must be over */
    unsigned cut;  /* requests that had no more time; valid when stopping has ended */
    /* set when stopping has ended; the signal that follows wakes the main thread */
    atomic_bool stopped;
    _Atomic(enum run_stage) stage;
    int number;             /* the signal that began the stop; 0 = none */
    const char *last_words; /* why the process ends at once */
    struct thread *starter; /* the thread that loads the models; NULL = not started */
    atomic_bool ending;     /* set by the main thread: the starter must log nothing more */
    /* set by the starter: the start has failed; the signal that follows wakes the main thread */
    atomic_bool failed;
};

/* Moves from RUN_STOPPING to another stage. False: the other thread was first. */
static bool run_leave_for(struct process *p, enum run_stage stage)
{
    enum run_stage from = RUN_STOPPING;
    return atomic_compare_exchange_strong(&p->stage, &from, stage);
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

static void stop_main(void *arg)
{
    struct process *p = arg;
    notify_manager("STOPPING=1", 0);
    if (p->number)
        LOG_INFO("signal %d (%s) received, stopping", p->number, strsignal(p->number));
    p->cut = fronts_end(&p->fronts, p->starter, p->until);
    while (!run_leave_for(p, RUN_FREES))
        pause(); /* the process ends at once; the last words still need the repository */
    server_free(p->fronts.server);
    atomic_store(&p->stopped, true);
    signals_wake();
}

static void say_last_words(void *arg)
{
    struct process *p = arg;
    if (atomic_load(&p->stage) == RUN_AT_ONCE)
        repo_say_left(p->fronts.server->repo);
    LOG_ERROR("%s", p->last_words);
    log_say_held();
    tree_remove_all();
    signals_wake();
}

/* Logs why the process ends at once. A separate thread logs it, because the reader of the log
 * may hang. */
static _Noreturn void end_at_once(struct process *p, const char *why)
{
    struct thread *thread = NULL;
    p->last_words = why;
    struct err *e = thread_start("last-words", say_last_words, p, &thread);
    if (!e)
        signals_wait(clock_now_ns() + LAST_WORDS_NS);
    _exit(1);
}

/* Stops on another thread, while this thread watches for a second signal and the timeout. Does
 * not return if one of them comes first. */
static void stop_in_time(struct process *p)
{
    uint32_t seconds = p->fronts.server->options->exit_timeout_secs;
    time_ns now = clock_now_ns();
    p->until = now + TIME_S(seconds);
    struct thread *thread = NULL;
    struct err *e = thread_start("stopper", stop_main, p, &thread);
    if (e) {
        err_free(e);
        p->cut = fronts_end(&p->fronts, p->starter, p->until);
        server_free(p->fronts.server);
        return;
    }
    while (!atomic_load(&p->stopped)) {
        int number = signals_wait(p->until);
        if (atomic_load(&p->stopped))
            break;
        if (number == SIGHUP) {
            log_files_anew();
            continue;
        }
        if (number && number == p->number && clock_now_ns() - now < REPEAT_NS)
            continue;
        if (!run_leave_for(p, RUN_AT_ONCE) && number)
            continue; /* all models are unloaded: the rest takes no time */
        end_at_once(p, number ? "ended at once by a second signal"
                              : "still not stopped after --exit-timeout-secs: ended at once");
    }
    thread_join(thread);
}

/* SIGHUP opens log files and reads certificates and keys anew. Where there are none, it ends a
 * server that was started at a terminal, which is gone. */
static int wait_for_end(const struct process *p)
{
    const struct options *o = p->fronts.server->options;
    bool files = log_files_any(o) || secure_asked(o);
    for (;;) {
        int number = signals_wait(secure_next(&p->fronts.secure));
        if (number && (number != SIGHUP || (!files && signals_hangup_ends())))
            return number;
        if (number && !files)
            LOG_INFO("signal %d (%s) received: there is nothing to read anew", number,
                     strsignal(number));
        if (number)
            log_files_anew();
        secure_look(&p->fronts.secure, number == SIGHUP);
    }
}

/* Loads the models on a separate thread, so that the main thread sees signals. */
static void starter(void *arg)
{
    struct process *p = arg;
    struct err *e = fronts_load(&p->fronts);
    if (atomic_load(&p->ending)) {
        err_free(e);
    } else if (e) {
        LOG_ERROR("%s", err_message(e));
        err_free(e);
        atomic_store(&p->failed, true);
        signals_wake();
    } else if (server_live(p->fronts.server)) {
        log_say_held(); /* lines held back while models were loaded */
        LOG_INFO("server is ready");
        notify_manager("READY=1", MANAGER_SECONDS);
    }
}

/* Runs until the end. Returns the exit status. */
static int serve_until_end(struct process *p)
{
    int number = wait_for_end(p);
    atomic_store(&p->ending, true);
    if (atomic_load(&p->failed))
        return 1;
    server_refuse(p->fronts.server);
    p->number = number;
    return 0;
}

static int serve_fronts(const struct options *o)
{
    struct process p = {0};
    struct err *e = server_new(o, &p.fronts.server);
    if (err_tell("nereid", e))
        return 1;
    e = server_start(p.fronts.server);
    if (!e)
        e = fronts_open(&p.fronts);
    if (!e) {
        warn_of_few_files();
        e = thread_start("starter", starter, &p, &p.starter);
    }
    int status = 1;
    if (e) {
        LOG_ERROR("%s", err_message(e));
        err_free(e);
    } else {
        status = serve_until_end(&p);
    }
    stop_in_time(&p);
    return p.cut ? 1 : status;
}

static int run_logged(const struct options *o)
{
    signals_block();
    struct err *e = log_files_apply(o);
    if (err_tell("nereid", e))
        return 1;
    int status = serve_fronts(o);
    log_say_held();
    log_files_close();
    return status;
}

struct err *run_check_repository(const struct options *o)
{
    return o->repository_count
               ? NULL
               : err_new(STATUS_INVALID_ARG, "--model-repository must be specified, see --help");
}

static const struct run_command {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"check", check_command},
    {"doctor", doctor_command},
    {"migrate", migrate_command},
    {"bench", bench_command},
};

/* A report that could not be written is no success.
 * command  "" = the server's own
 * output   false: the standard output was closed */
static int run_written(const char *command, int status, bool output)
{
    if (fflush(stdout) == 0 && !ferror(stdout) && output)
        return status;
    fprintf(stderr, "nereid%s%s: the standard output cannot be written\n", *command ? " " : "",
            command);
    return 1;
}

int run_server(int argc, char **argv)
{
    bool output = standard_fill();
    heap_begin();
    if (isolate_child_is(argc, argv))
        return isolate_child_run();
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return run_written(argv[1], commands[i].run(argc - 1, argv + 1), output);
    struct options *o = mem_alloc(sizeof(*o));
    enum options_action action = OPTIONS_RUN;
    options_defaults(o);
    struct err *e = options_parse(argc, argv, o, &action);
    if (!e && action == OPTIONS_RUN)
        e = run_check_repository(o);
    if (!e && action == OPTIONS_RUN)
        e = fronts_check(o);
    int status = 0;
    if (err_tell("nereid", e)) {
        status = 1;
    } else if (action == OPTIONS_VERSION) {
        puts("nereid " BUILD_VERSION);
        status = run_written("", 0, output);
    } else if (action == OPTIONS_HELP) {
        char *help = options_help();
        fputs(help, stdout);
        mem_free(help);
        status = run_written("", 0, output);
    } else {
        status = run_logged(o);
    }
    options_fini(o);
    mem_free(o);
    return status;
}
