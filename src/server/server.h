#pragma once
/* The server: options, workers, what is served, the repository. Front ends (net/) and the C API
 * sit on top of it. */
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
struct repo;
struct serve_table;

#define SERVER_MAGIC 0x53525652u

enum server_state {
    SERVER_INITIALIZING,
    SERVER_READY,
    SERVER_STOPPING,
    SERVER_FAILED,
};

struct server {
    uint32_t magic;
    struct embed *embed;    /* in a host program; NULL in the executable */
    struct options options; /* as given; strings are borrowed and must outlive the server */
    struct serve_table *table;
    struct backend_registry *backends;
    struct backend_setting *backend_settings;
    struct features *features; /* those of server/rooms.c, as the options ask for them */
    struct host_policies policies;
    struct repo *repo;
    struct progress progress;
    struct worker *workers;
    unsigned worker_count;
    bool unloaded; /* by server_unload */
    _Atomic(enum server_state)
        state; /* released by the thread that changes it, acquired by readers of what it tells */
    uint64_t start_wall_ns;
    /* Of the machine when the metrics page was asked for last; relaxed would do, they order
     * nothing. */
    _Atomic(uint64_t) last_busy_ticks;
    _Atomic(uint64_t) busy_ppm;
    _Atomic(time_ns) busy_measured; /* when */
    _Atomic(uint64_t) last_total_ticks;
};

/* server_new - workers (their loops do not run yet) and an empty table; options are copied. */
struct err *server_new(const struct options *options, struct server **ret);

/* server_start - run the workers. Then front ends may be opened. */
struct err *server_start(struct server *s);

/* server_load - load the repository; blocks until every model to load is ready or has failed.
 * The server is ready afterwards, unless server_refuse was called meanwhile: then what had not
 * begun to load does not, and the error is of no use.
 * errors  when a repository cannot be read, or a model failed and exit_on_error asks for it */
struct err *server_load(struct server *s);

/* server_refuse - readiness becomes false; front ends go on until they are stopped. Any thread,
 * also during server_load. */
void server_refuse(struct server *s);

/* server_unload - refuse, unload the models once their requests are answered. server_load has
 * returned. Blocks. */
void server_unload(struct server *s);

/* server_stop - refuse, unload the models once their requests are answered, end the workers.
 * Front ends were stopped, server_load has returned. Blocks. */
void server_stop(struct server *s);

/* server_free - the workers have ended, or never started. NULL is fine. */
void server_free(struct server *s);

/* server_live, server_ready - as health answers. Never block. */
bool server_live(const struct server *s);
bool server_ready(struct server *s, struct table_view *view);
