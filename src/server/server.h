#pragma once
/* The server: options, workers, served models, repository. The front ends (net/) and the C API
 * use it. */
#include "base/err.h"
#include "plugin/host_policy.h"
#include "server/options/options.h"
#include "server/progress.h"
#include "server/worker.h"

#include <stdbool.h>
#include <stdint.h>

struct backend_registry;
struct backend_setting;
struct embed;
struct features;
struct recent;
struct regions;
struct repo;
struct serve_table;
struct tracing;

#define SERVER_MAGIC 0x53525652u

enum server_state {
    SERVER_INITIALIZING,
    SERVER_READY,
    SERVER_STOPPING,
    SERVER_FAILED,
};

struct server {
    uint32_t magic;
    struct embed *embed;           /* set in a host program; NULL in the executable */
    const struct options *options; /* as given; must outlive the server */
    struct serve_table *table;
    struct backend_registry *backends;
    struct backend_setting *backend_settings;
    struct features *features; /* the features of server/rooms.c, configured by the options */
    struct regions *regions;   /* shared memory that clients registered */
    struct tracing *tracing;   /* which requests are traced */
    struct host_policies policies;
    struct repo *repo;
    struct recent *recent; /* the failures that came last, for the live page */
    struct progress progress;
    struct worker *workers;
    unsigned worker_count;
    bool unloaded; /* server_unload was called */
    _Atomic(enum server_state)
        state; /* released by the thread that changes it, acquired by readers of what it tells */
    uint64_t start_wall_ns;
    /* The machine's CPU usage when the metrics page was last requested. These values order
     * nothing. */
    _Atomic(uint64_t) last_busy_ticks;
    _Atomic(uint64_t) busy_ppm;
    _Atomic(time_ns) busy_measured; /* when busy_ppm was measured */
    _Atomic(uint64_t) last_total_ticks;
};

/* server_new - make the workers (their loops do not run yet) and an empty table. The options
 * must outlive the server, which does not change them. */
struct err *server_new(const struct options *options, struct server **ret);

/* server_try_features, server_try_tracing - open what server_new opens of this kind, and close it
 * again. Block. Errors as server_new. */
struct err *server_try_features(const struct options *options);
struct err *server_try_tracing(const struct options *options);

/* server_start - run the workers. Front ends may be opened after it. */
struct err *server_start(struct server *s);

/* server_load - load the repository. Blocks until every model to load is ready or has failed.
 * server_serve makes the server ready. If server_refuse was called meanwhile, models that had not
 * begun to load are not loaded, and the error has no meaning.
 * errors  a repository cannot be read, or a model failed and exit_on_error is set */
struct err *server_load(struct server *s);

/* server_initializing - true from server_new to server_serve, unless loading failed or
 * server_refuse was called. Any thread, never blocks. */
bool server_initializing(const struct server *s);

/* server_serve - after server_load, and when all that requests need is settled: the server is
 * ready, unless loading failed or server_refuse was called: then false. Never blocks. */
bool server_serve(struct server *s);

/* server_refuse - readiness becomes false; front ends go on until they are stopped. Any thread,
 * also during server_load. */
void server_refuse(struct server *s);

/* server_unload - call server_refuse, then unload the models once their requests are answered.
 * server_load must have returned. Blocks. */
void server_unload(struct server *s);

/* server_stop - call server_unload, then end the workers. The front ends were stopped, and
 * server_load has returned. Blocks. */
void server_stop(struct server *s);

/* server_free - free the server; the workers have ended, or were never started. NULL is fine. */
void server_free(struct server *s);

/* server_live, server_ready - the answers to health requests. Never block. */
bool server_live(const struct server *s);
bool server_ready(struct server *s, struct table_view *view);
