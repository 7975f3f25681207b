#include "server/server.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/gpu_memory.h"
#include "gpu/gpu_meter.h"
#include "infer/first_response.h"
#include "infer/stats.h"
#include "metrics/recent.h"
#include "os/files/tree.h"
#include "os/process/cpu.h"
#include "os/dl_pages.h"
#include "os/heap.h"
#include "os/pages.h"
#include "os/pool.h"
#include "os/thread.h"
#include "plugin/backend.h"
#include "plugin/model.h"
#include "regions/regions.h"
#include "repo/repo.h"
#include "serve/version.h"
#include "server/housekeeping.h"
#include "server/rooms.h"
#include "server/start_advice.h"
#include "server/start_table.h"
#include "tracing/tracing.h"

#include <stdio.h>
#include <string.h>

/* So long at most, and a quarter of the time to stop in, a collector has for the last traces. */
#define TRACES_NS TIME_S(5)

#define RECEIVE_BYTES ((size_t)256 << 10)

static struct err *worker_init(struct worker *w, struct server *s, unsigned index)
{
    w->server = s;
    w->index = index;
    struct err *e = loop_new(&w->loop);
    if (e)
        return e;
    table_view_open(&w->view, s->table, w->loop);
    submit_init(&w->submitter, w->loop);
    w->submitter.view = &w->view;
    w->receive = pages_map(RECEIVE_BYTES);
    w->receive_bytes = RECEIVE_BYTES;
    return w->receive ? NULL
                      : err_new(STATUS_UNAVAILABLE, "no memory for the receive buffer of a loop");
}

static void worker_fini(struct worker *w)
{
    if (!w->loop)
        return;
    housekeeping_end(w);
    loop_free(w->loop);
    table_view_close(&w->view);
    pages_unmap(w->receive, w->receive_bytes);
}

static void worker_main(void *arg)
{
    struct worker *w = arg;
    thread_prompt();
    loop_run(w->loop);
}

static enum repo_mode repo_mode(enum options_control_mode mode)
{
    switch (mode) {
    case OPTIONS_CONTROL_NONE:
        return REPO_MODE_NONE;
    case OPTIONS_CONTROL_POLL:
        return REPO_MODE_POLL;
    case OPTIONS_CONTROL_EXPLICIT:
        return REPO_MODE_EXPLICIT;
    }
    return REPO_MODE_NONE;
}

static void make_repo(struct server *s)
{
    const struct options *o = s->options;
    struct backend_setting *settings = mem_zalloc(o->backend_setting_count * sizeof(*settings));
    for (size_t i = 0; i < o->backend_setting_count; i++)
        settings[i] =
            (struct backend_setting){o->backend_settings[i].backend, o->backend_settings[i].key,
                                     o->backend_settings[i].value};
    s->backend_settings = settings;
    s->policies = (struct host_policies){o->limits.policies, o->limits.policy_count};
    s->backends = MEM_NEW(struct backend_registry);
    backend_registry_init(s->backends, o->backend_directory, settings, o->backend_setting_count,
                          o->auto_complete_config);
    s->repo = repo_new(
        &(struct repo_settings){
            .paths = s->options->repositories,
            .path_count = o->repository_count,
            .load_threads = o->model_load_threads ? o->model_load_threads : 1,
            .mode = repo_mode(o->control_mode),
            .poll_secs = o->poll_secs,
            .retries = o->model_load_retries,
            .startup_models = s->options->load_models,
            .startup_count = o->load_model_count,
            .namespacing = o->model_namespacing,
            .library_upload = o->allow_library_upload,
            .agent_directory = o->repoagent_directory,
            .archives = o->sagemaker.models,
            .recent = s->recent,
            .context = {.backends = s->backends,
                        .features = s->features,
                        .policies = &s->policies,
                        .config_name = o->model_config_name,
                        .auto_complete = o->auto_complete_config,
                        .allow_inline = o->inline_execution,
                        .house = s->workers[0].loop,
                        .server = s},
        },
        s->table);
}

static void set_up_gpus(const struct options *all)
{
    const struct options_gpus *o = &all->gpus;
    gpu_open(o->least_capability);
    if (all->allow_metrics && all->allow_gpu_metrics)
        gpu_meter_want(TIME_MS(all->metrics_interval_ms));
    gpu_memory_limit_pinned(o->pinned_bytes);
    for (size_t i = 0; i < o->pool_count; i++)
        gpu_memory_limit(o->pools[i].device, o->pools[i].bytes);
    for (size_t i = 0; i < o->limit_count; i++)
        gpu_memory_limit_loads(o->limits[i].device, o->limits[i].fraction);
}

struct err *server_new(const struct options *options, struct server **ret)
{
    struct server *s = MEM_NEW(struct server);
    s->magic = SERVER_MAGIC;
    s->options = options;
    s->start_wall_ns = clock_wall_ns();
    s->table = table_new();
    s->recent = recent_new();
    set_up_gpus(options);
    unsigned count = options->loop_threads ? options->loop_threads : cpu_count();
    count = count < OPTIONS_MAX_LOOP_THREADS ? count : OPTIONS_MAX_LOOP_THREADS;
    if (options->latencies.summaries)
        stats_keep_parts();
    if (options->latencies.histograms)
        first_response_keep();
    budget_set_limit(options->memory_budget_bytes ? options->memory_budget_bytes
                                                  : cpu_memory_limit() / 2);
    s->regions =
        regions_new(options->allow_client_shm,
                    options->client_shm_bytes ? options->client_shm_bytes : cpu_memory_limit());
    s->workers = mem_zalloc(count * sizeof(*s->workers));
    for (unsigned i = 0; i < count; i++) {
        struct err *e = worker_init(&s->workers[i], s, i);
        s->worker_count = i + 1;
        if (e) {
            server_free(s);
            return e;
        }
    }
    struct err *e = features_open(&rooms_list, s->options, &s->features);
    if (!e)
        e = tracing_open(&s->options->trace, &s->tracing);
    for (unsigned i = 0; i < count; i++)
        s->workers[i].tracing = s->tracing;
    if (e) {
        server_free(s);
        return e;
    }
    make_repo(s);
    *ret = s;
    return NULL;
}

struct err *server_try_features(const struct options *options)
{
    struct features *f = NULL;
    struct err *e = features_open(&rooms_list, options, &f);
    features_close(f);
    return e;
}

struct err *server_try_tracing(const struct options *options)
{
    struct tracing *t = NULL;
    struct err *e = tracing_open(&options->trace, &t);
    tracing_close(t, 0);
    return e;
}

struct err *server_start(struct server *s)
{
    progress_start(&s->progress, s);
    for (unsigned i = 0; i < s->worker_count; i++) {
        char name[16];
        snprintf(name, sizeof(name), "loop-%u", i);
        housekeeping_start(&s->workers[i]);
        struct err *e = thread_start(name, worker_main, &s->workers[i], &s->workers[i].thread);
        if (e)
            return e;
    }
    return NULL;
}

static void log_tables(struct server *s)
{
    char *agents = start_table_agents(s->repo);
    LOG_TABLE(agents);
    mem_free(agents);
    char *backends = start_table_backends(s->backends);
    LOG_TABLE(backends);
    mem_free(backends);
    struct table_view view;
    table_view_open(&view, s->table, NULL);
    char *text = start_table_text(&view);
    table_view_close(&view);
    LOG_TABLE(text);
    mem_free(text);
    char *options = start_table_options(s);
    LOG_TABLE(options);
    mem_free(options);
}

/* Returns false if the server failed, or was told to stop, before. */
static bool leave_initializing(struct server *s, enum server_state to)
{
    enum server_state before = SERVER_INITIALIZING;
    return atomic_compare_exchange_strong(&s->state, &before, to);
}

struct err *server_load(struct server *s)
{
    size_t failed = 0;
    tree_sweep((const char *const[]){TREE_UPLOAD, TREE_AGENT, NULL});
    struct err *e = repo_load_all(s->repo, &failed);
    log_tables(s);
    start_advice_repositories(s);
    start_advice_budget(s);
    dl_pages_forget();
    heap_keep_large();
    if (!e && failed && s->options->exit_on_error)
        e = err_new(STATUS_INTERNAL,
                    "failed to load all models: %zu could not be loaded, the log says why; "
                    "without exit-on-error the others are served",
                    failed);
    if (!e)
        return NULL;
    /* As in the reference, without exit_on_error it keeps running with open ports, and is not
     * live. */
    if (!s->options->exit_on_error)
        table_refuse(s->table);
    leave_initializing(s, SERVER_FAILED);
    if (s->options->exit_on_error)
        return e;
    LOG_ERROR("%s; nothing is served", err_message(e));
    err_free(e);
    return NULL;
}

bool server_initializing(const struct server *s)
{
    return atomic_load(&s->state) == SERVER_INITIALIZING;
}

bool server_serve(struct server *s)
{
    return leave_initializing(s, SERVER_READY);
}

void server_refuse(struct server *s)
{
    atomic_store(&s->state, SERVER_STOPPING);
    repo_refuse(s->repo);
}

void server_unload(struct server *s)
{
    server_refuse(s);
    if (s->workers[0].thread && !s->unloaded)
        repo_unload_all(s->repo);
    s->unloaded = true;
}

void server_stop(struct server *s)
{
    server_unload(s);
    if (s->regions)
        regions_stop(s->regions);
    for (unsigned i = 0; i < s->worker_count; i++) {
        if (!s->workers[i].thread)
            continue;
        loop_stop(s->workers[i].loop);
        thread_join(s->workers[i].thread);
        s->workers[i].thread = NULL;
    }
}

void server_free(struct server *s)
{
    if (!s)
        return;
    repo_free(s->repo);
    if (s->backends)
        backend_registry_fini(s->backends);
    features_close(s->features);
    time_ns share = TIME_S(s->options->exit_timeout_secs) / 4;
    tracing_close(s->tracing, share < TRACES_NS ? share : TRACES_NS);
    for (unsigned i = 0; i < s->worker_count; i++)
        worker_fini(&s->workers[i]);
    table_free(s->table);
    recent_free(s->recent);
    regions_free(s->regions);
    gpu_close();
    pool_trim(TIME_NEVER);
    mem_free(s->backends);
    mem_free(s->backend_settings);
    mem_free(s->workers);
    s->magic = 0;
    mem_free(s);
}

bool server_live(const struct server *s)
{
    enum server_state state = atomic_load(&s->state);
    return state == SERVER_READY || state == SERVER_STOPPING;
}

/* True if a version does not prevent readiness. Versions that were replaced, are unloaded or are
 * being unloaded do not prevent it; versions that failed or are loading do. As in the reference,
 * a model that could not even be looked at does not prevent it. */
static bool counts_as_ready(const struct table_entry *e)
{
    if (e->number == 0)
        return true;
    if (e->version && !model_ready(e->version->model))
        return false;
    return e->state == TABLE_READY || e->state == TABLE_UNLOADING || e->state == TABLE_UNLOADED;
}

/* True for a model that never had a version: nothing of it could be ready. */
static bool lacks_versions(const struct table_model *m)
{
    return m->versionless && m->entry_count == 1 && m->entries[0].number == 0;
}

static bool model_counts_as_ready(const struct table_model *m)
{
    for (uint32_t i = 0; i < m->entry_count; i++)
        if (!counts_as_ready(&m->entries[i]))
            return false;
    return !lacks_versions(m);
}

static bool all_ready(struct table_view *view)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    for (uint32_t i = 0; i < count; i++)
        if (models[i].wanted && !model_counts_as_ready(&models[i]))
            return false;
    return true;
}

bool server_ready(struct server *s, struct table_view *view)
{
    return atomic_load(&s->state) == SERVER_READY &&
           (!s->options->strict_readiness || all_ready(view));
}
