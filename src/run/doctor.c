#include "run/doctor.h"

#include "base/build_version.h"
#include "base/err_tell.h"
#include "base/log_text.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/cloud.h"
#include "gpu/gpu.h"
#include "os/dl.h"
#include "os/files/file.h"
#include "os/process/cpu.h"
#include "os/process/cpu_bind.h"
#include "os/process/process.h"
#include "os/sock.h"
#include "os/sock_unix.h"
#include "plugin/host_policy.h"
#include "repo/load/local.h"
#include "run/fronts.h"
#include "run/run.h"
#include "run/secure.h"
#include "server/options/options.h"
#include "server/server.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: nereid doctor [OPTION...]\n"
    "\n"
    "Says what this machine has for a server with these options (those of nereid, see --help),\n"
    "and what would be refused. Nothing is served and nothing is changed.\n"
    "Exit status: 0 no problem, 1 problems, 2 wrong command line.\n";

#define MEND_FILE "name a file that this user may write to, in a directory that is there"

struct doctor {
    const struct options *options;
    struct strbuf problems;
    unsigned count; /* number of problems */
};

__attribute__((format(printf, 2, 3))) static void fact(const char *name, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("%-12s ", name);
    vprintf(fmt, args);
    putchar('\n');
    va_end(args);
}

static void problem(struct doctor *d, const char *what, const char *mend)
{
    d->count++;
    log_text_put_tame(&d->problems, what); /* names of files are no commands for the terminal */
    strbuf_printf(&d->problems, "\n    mend: %s\n", mend);
}

static void problem_of(struct doctor *d, struct err *e, const char *mend)
{
    problem(d, err_message(e), mend);
    err_free(e);
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (double)((uint64_t)1 << 30);
}

static void tell_machine(struct doctor *d)
{
    const struct options *o = d->options;
    uint64_t memory = cpu_memory_limit();
    uint64_t budget = o->memory_budget_bytes ? o->memory_budget_bytes : memory / 2;
    struct process_fds fds = process_fds();
    fact("cores", "%u for this process, of %ld in the machine", cpu_count(),
         sysconf(_SC_NPROCESSORS_ONLN));
    fact("memory", "%.1f GiB for this process; %.1f GiB for requests in flight (--memory-budget)",
         gib(memory), gib(budget));
    if (budget < OPTIONS_SMALL_BUDGET)
        problem(d, "--memory-budget is less than 1 MiB: larger requests are refused",
                "it counts bytes: 1073741824 is 1 GiB");
    if (budget > memory)
        problem(d, "--memory-budget is more than the memory that this process may use",
                "lower it, or raise the limit of the container or service");
    if (fds.max == UINT64_MAX)
        fact("open files", "no limit");
    else
        fact("open files", "at most %" PRIu64, fds.max);
    if (fds.max < RUN_FEW_FILES)
        problem(d,
                "the limit of open files is low: each connection and each model's file takes one",
                "raise it: ulimit -n 65536, LimitNOFILE=65536 of a systemd unit, --ulimit "
                "nofile=65536 of a container");
}

/* Try the policy of that name, as an instance would. */
static void tell_policy(struct doctor *d, const struct host_policies *all, const char *name)
{
    struct host_policy *p = host_policy_named(all, name);
    struct cpu_bind *was;
    struct err *e = host_policy_enter(p, &was);
    if (e)
        problem_of(d, err_wrap(e, "option --host-policy=%s", name),
                   "choose among the cores that `taskset -pc $$` shows, as FIRST-LAST, and the "
                   "NUMA nodes that `lscpu` shows");
    else
        fact("host policy", "%s: %u cores", name, cpu_count());
    cpu_bind_restore(was);
    host_policy_free(p);
}

/* The policies that --host-policy names; each once. */
static void tell_policies(struct doctor *d)
{
    const struct options_limits *l = &d->options->limits;
    const struct host_policies all = {l->policies, l->policy_count};
    for (size_t i = 0; i < all.count; i++) {
        bool told = false;
        for (size_t k = 0; k < i && !told; k++)
            told = strcmp(all.settings[k].policy, all.settings[i].policy) == 0;
        if (!told)
            tell_policy(d, &all, all.settings[i].policy);
    }
}

/* The file marks the active value: "always [madvise] never" means madvise. */
static void tell_huge_pages(void)
{
    char text[128] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (f && !fgets(text, sizeof(text), f))
        text[0] = '\0';
    if (f)
        fclose(f);
    char *begin = strchr(text, '[');
    char *end = begin ? strchr(begin, ']') : NULL;
    if (end)
        fact("huge pages", "transparent: %.*s", (int)(end - begin - 1), begin + 1);
    else
        fact("huge pages", "none");
}

/* What the driver of a machine with a GPU makes. */
static const char nvidia_device[] = "/dev/nvidia0";

static void tell_gpus(struct doctor *d)
{
    gpu_open(d->options->gpus.least_capability);
    const struct gpu_list *l = gpu_look();
    if (l->absence)
        fact("GPUs", "none: %s", l->absence);
    else
        fact("GPUs", "%zu, %zu of them used; the driver has CUDA %d.%d", l->count, l->usable_count,
             l->version / 1000, l->version % 1000 / 10);
    for (size_t i = 0; i < l->count; i++) {
        const struct gpu_device *g = &l->devices[i];
        fact("", "%d: %s, %.1f GiB, compute capability %d.%d, %s", g->id, g->name, gib(g->bytes),
             g->major, g->minor, g->uuid);
    }
    if (l->count && !l->usable_count)
        problem(d, "no GPU has the compute capability that is asked for",
                "lower --min-supported-compute-capability");
    if (l->absence && file_exists(nvidia_device))
        problem(d, "there is an NVIDIA device, and CUDA's driver does not show it",
                "install the driver of the device; in a container, start it with the GPUs (docker "
                "run --gpus all)");
    gpu_close();
}

/* List the plug-ins of one kind: DIRECTORY/NAME/PREFIX_NAME.so. Each one is opened, because the
 * dynamic loader then reports missing libraries. */
static void tell_plugins(struct doctor *d, const char *what, const char *directory,
                         const char *prefix, bool wanted)
{
    struct local_names names = {0};
    struct err *e = local_directories(directory, &names);
    struct strbuf found = STRBUF_INIT;
    for (size_t i = 0; !e && i < names.count; i++) {
        struct strbuf path = STRBUF_INIT;
        strbuf_printf(&path, "%s/%s/%s_%s.so", directory, names.names[i], prefix, names.names[i]);
        struct dl *dl = NULL;
        struct err *bad = file_exists(strbuf_str(&path)) ? dl_open(strbuf_str(&path), &dl) : NULL;
        if (dl)
            strbuf_printf(&found, "%s%s", found.len ? ", " : "", names.names[i]);
        if (bad)
            problem_of(d, bad, "install what it needs, or remove it");
        strbuf_fini(&path);
    }
    if (found.len)
        log_text_tame(found.data);
    fact(what, "%s: %s", directory, found.len ? found.data : "none");
    if (wanted && !found.len)
        problem(d, "no backend was found", "name their directory with --backend-directory");
    err_free(e);
    strbuf_fini(&found);
    local_names_fini(&names);
}

/* A front end to come. */
struct front_end {
    const char *name;
    bool open;
    const char *address;
    uint16_t port;
    bool reuse;
    int fd; /* the socket that has the port now, so that no other one is told that it is free */
};

/* The front end before ends[i] that is in its way; NULL = none. */
static const struct front_end *front_end_before(const struct front_end *ends, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (ends[k].fd >= 0 && ends[k].port && ends[k].port == ends[i].port &&
            sock_meet(ends[k].address, ends[i].address))
            return &ends[k];
    return NULL;
}

/* Tells of ends[i]. Of two that are in each other's way fronts_check tells. */
static void tell_port(struct doctor *d, struct front_end *ends, size_t i)
{
    struct front_end *own = &ends[i];
    const char *path = sock_unix_path(own->address);
    struct err *e =
        path ? sock_unix_look(path) : sock_listen(own->address, own->port, own->reuse, &own->fd);
    const struct front_end *other = e && !path ? front_end_before(ends, i) : NULL;
    const char *what = e ? "cannot be used" : "is free";
    char *shown = sock_address(own->address, own->port);
    fact(own->name, "%s %s%s%s", shown, what, other ? ": it is that of " : "",
         other ? other->name : "");
    mem_free(shown);
    if (other)
        err_free(e);
    else if (e)
        problem_of(d, e,
                   path ? "make its directory, or remove what lies there, or choose another path"
                        : "end the process that has it, or choose another one: --http-port, "
                          "--grpc-port, --metrics-port and the options for addresses");
}

static void tell_ports(struct doctor *d)
{
    const struct options *o = d->options;
    const char *metrics = o->metrics_address ? o->metrics_address : o->http_address;
    const char *openai = o->openai.address ? o->openai.address : o->http_address;
    struct front_end ends[] = {
        {"HTTP", o->allow_http, o->http_address, o->http_port, o->reuse_http_port, -1},
        {"gRPC", o->allow_grpc, o->grpc_address, o->grpc_port, o->reuse_grpc_port, -1},
        {"metrics", o->allow_metrics, metrics, o->metrics_port, false, -1},
        {"OpenAI", o->openai.allow, openai, o->openai.port, o->reuse_http_port, -1},
        {"SageMaker", o->sagemaker.allow, FRONTS_CLOUDS_ADDRESS, o->sagemaker.port, false, -1},
        {"Vertex AI", o->vertex.allow, FRONTS_CLOUDS_ADDRESS, o->vertex.port, false, -1},
    };
    const size_t count = sizeof(ends) / sizeof(*ends), always = 3;
    struct err *e = fronts_check(o);
    if (e)
        problem_of(d, e, "correct that option");
    for (size_t i = 0; i < count; i++)
        if (ends[i].open)
            tell_port(d, ends, i);
        else if (i < always)
            fact(ends[i].name, "closed");
    for (size_t i = 0; i < count; i++)
        if (ends[i].fd >= 0)
            sock_close(ends[i].fd);
}

static void tell_log_file(struct doctor *d, const char *option, const char *path, bool stdout_too)
{
    if (!path || (stdout_too && strcmp(path, "-") == 0))
        return;
    struct err *e = file_append_look(path);
    if (!e && file_is_pipe(path)) /* to look for a reader would end it */
        fact(option, "'%s' is a named pipe: the server starts only while somebody reads it", path);
    if (e)
        problem_of(d, err_wrap(e, "option --%s", option), MEND_FILE);
}

/* With a frequency, the first of the files with a number. */
static void tell_trace_file(struct doctor *d)
{
    const struct options_trace *t = &d->options->trace;
    if (!t->file || t->opentelemetry)
        return;
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s%s", t->file, t->frequency ? ".0" : "");
    struct err *e = file_append_look(strbuf_str(&path));
    if (!e && file_is_pipe(strbuf_str(&path)))
        e = err_new(STATUS_INVALID_ARG, "'%s' is not a regular file", strbuf_str(&path));
    if (e)
        problem_of(d, err_wrap(e, "option --trace-config"), MEND_FILE);
    strbuf_fini(&path);
}

/* Open what a server with these options would. */
static void tell_opened(struct doctor *d)
{
    struct err *e = server_try_features(d->options);
    if (e)
        problem_of(
            d, e, "correct --cache-config, or name the directory of caches with --cache-directory");
    e = server_try_tracing(d->options);
    if (e)
        problem_of(d, e, "correct that option, or the variable of OpenTelemetry");
}

/* Read certificates and keys as a server would. */
static void tell_secure(struct doctor *d)
{
    struct secure s = {0};
    struct err *e = secure_open(&s, d->options);
    if (e)
        problem_of(d, e, "correct the files that the options of TLS and --api-keys name");
    else if (s.http.tls || s.grpc.tls || s.metrics.tls)
        fact("TLS", "its files can be used");
    secure_close(&s);
}

static void tell_repository(struct doctor *d, const char *path)
{
    struct local_names names = {0};
    if (cloud_is(path)) {
        fact("repository", "%s: in the cloud, not looked at", path);
        return;
    }
    struct err *e = local_models(path, &names);
    if (e) {
        fact("repository", "%s: cannot be read", path);
        problem_of(d, e, "name a directory of model directories with --model-repository");
        return;
    }
    fact("repository", "%s: %zu directories of models; nereid check looks at them", path,
         names.count);
    local_names_fini(&names);
    enum local_kind kind = local_look(path);
    struct strbuf what = STRBUF_INIT;
    strbuf_printf(&what, "'%s' %s", path,
                  kind == LOCAL_MODEL ? "looks like the directory of one model" : "has no model");
    if (kind == LOCAL_MODEL)
        problem(d, strbuf_str(&what), "name the directory above it");
    else if (kind == LOCAL_EMPTY)
        problem(d, strbuf_str(&what), "make a directory for each: MODEL/1/ with the model's file");
    strbuf_fini(&what);
}

static void tell_repositories(struct doctor *d)
{
    struct err *e = run_check_repository(d->options);
    if (e)
        problem_of(d, e, "name a directory of model directories");
    for (size_t i = 0; i < d->options->repository_count; i++)
        tell_repository(d, d->options->repositories[i]);
}

static int doctor_tell(const struct options *o)
{
    struct doctor d = {.options = o, .problems = STRBUF_INIT};
    dl_make_self_global((const void *)(uintptr_t)doctor_command);
    fact("nereid", BUILD_VERSION);
    tell_machine(&d);
    tell_policies(&d);
    tell_huge_pages();
    tell_gpus(&d);
    tell_plugins(&d, "backends", o->backend_directory, "libtriton", true);
    tell_plugins(&d, "caches", o->cache_directory, "libtritoncache", false);
    tell_plugins(&d, "agents", o->repoagent_directory, "libtritonrepoagent", false);
    tell_opened(&d);
    tell_ports(&d);
    tell_log_file(&d, "log-file", o->log_file, false);
    tell_log_file(&d, "access-log", o->access_log, true);
    tell_trace_file(&d);
    tell_secure(&d);
    tell_repositories(&d);
    for (size_t i = 0; i < o->warning_count; i++)
        fact("option", "%s", o->warnings[i]);
    printf("\n%s%u problems\n", strbuf_str(&d.problems), d.count);
    strbuf_fini(&d.problems);
    return d.count ? 1 : 0;
}

int doctor_command(int argc, char **argv)
{
    struct options *o = mem_alloc(sizeof(*o));
    enum options_action action;
    options_defaults(o);
    int status = 0;
    struct err *e = options_parse(argc, argv, o, &action);
    if (err_tell("nereid doctor", e)) {
        status = 2;
    } else if (action == OPTIONS_RUN) {
        status = doctor_tell(o);
    } else {
        fputs(usage, stdout);
    }
    options_fini(o);
    mem_free(o);
    return status;
}
