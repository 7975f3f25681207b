#include "repo/repo.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/version_policy.h"
#include "os/file.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "proto/model_config.pb-c.h"
#include "serve/table.h"
#include "serve/version.h"
#include "store/local.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#define MAX_LOAD_THREADS 64u

struct repo_version {
    int64_t number;
    enum table_state state;
    char *reason; /* NULL when there is none */
    struct serve_version *version;
};

struct repo_model {
    char *name;
    char *dir;
    bool twice;                    /* more than one repository has a model of this name */
    struct repo_version *versions; /* ascending */
    size_t version_count;
};

struct repo {
    struct repo_settings settings;
    struct serve_table *table;
    struct mutex lock; /* rank REPO; guards the states of the versions while loaders run */
    struct repo_model *models;
    size_t model_count;
    atomic_size_t next; /* the next model that a loader takes */
};

struct repo *repo_new(const struct repo_settings *settings, struct serve_table *table)
{
    struct repo *r = MEM_NEW(struct repo);
    r->settings = *settings;
    r->table = table;
    mutex_init(&r->lock, MUTEX_RANK_REPO);
    return r;
}

/* Publishes the states as they are. Caller holds the lock. */
static void publish(struct repo *r)
{
    struct table_model *models = mem_zalloc(r->model_count * sizeof(*models));
    for (size_t i = 0; i < r->model_count; i++) {
        const struct repo_model *m = &r->models[i];
        struct table_model *t = &models[i];
        t->name = mem_strdup(m->name);
        t->entry_count = (uint32_t)m->version_count;
        t->latest = t->entry_count;
        t->entries = mem_zalloc(m->version_count * sizeof(*t->entries));
        for (size_t k = 0; k < m->version_count; k++) {
            const struct repo_version *v = &m->versions[k];
            t->entries[k] =
                (struct table_entry){.number = v->number,
                                     .state = v->state,
                                     .reason = mem_strdup(v->reason ? v->reason : ""),
                                     .version = v->state == TABLE_READY ? v->version : NULL};
            if (v->state == TABLE_READY)
                t->latest = (uint32_t)k;
        }
    }
    table_publish(r->table, models, (uint32_t)r->model_count);
}

static void set_state(struct repo *r, struct repo_version *v, enum table_state state,
                      const char *reason, struct serve_version *version)
{
    mutex_lock(&r->lock);
    v->state = state;
    mem_free(v->reason);
    v->reason = reason ? mem_strdup(reason) : NULL;
    v->version = version;
    publish(r);
    mutex_unlock(&r->lock);
}

static struct repo_model *find_model(struct repo *r, const char *name)
{
    for (size_t i = 0; i < r->model_count; i++)
        if (strcmp(r->models[i].name, name) == 0)
            return &r->models[i];
    return NULL;
}

static struct err *scan(struct repo *r)
{
    for (size_t p = 0; p < r->settings.path_count; p++) {
        struct local_names names;
        struct err *e = local_models(r->settings.paths[p], &names);
        if (e)
            return e;
        r->models = mem_realloc(r->models, (r->model_count + names.count) * sizeof(*r->models));
        for (size_t i = 0; i < names.count; i++) {
            struct repo_model *there = p ? find_model(r, names.names[i]) : NULL;
            if (there)
                there->twice = true;
            else
                r->models[r->model_count++] =
                    (struct repo_model){.name = mem_strdup(names.names[i]),
                                        .dir = file_join(r->settings.paths[p], names.names[i])};
        }
        local_names_fini(&names);
    }
    return NULL;
}

/* A version that will not serve, or is about to: the model's list grows before any loader looks at it. */
static void add_version(struct repo *r, struct repo_model *m, int64_t number,
                        enum table_state state, const char *reason)
{
    mutex_lock(&r->lock);
    m->versions = mem_realloc(m->versions, (m->version_count + 1) * sizeof(*m->versions));
    m->versions[m->version_count++] = (struct repo_version){
        .number = number, .state = state, .reason = reason ? mem_strdup(reason) : NULL};
    mutex_unlock(&r->lock);
}

static struct err *find_versions(const struct repo_model *m,
                                 const struct Inference__ModelConfig *proto, int64_t **ret,
                                 size_t *ret_count)
{
    struct local_names dirs;
    struct err *e = local_directories(m->dir, &dirs);
    if (e)
        return e;
    int64_t *numbers = mem_alloc(dirs.count * sizeof(*numbers));
    size_t found = 0;
    for (size_t i = 0; i < dirs.count; i++)
        if (version_policy_parse_dir(dirs.names[i], &numbers[found]))
            found++;
    local_names_fini(&dirs);
    int64_t missing;
    version_policy_pick(proto->version_policy, numbers, found, ret_count, &missing);
    if (missing != -1)
        LOG_WARN("model '%s': its version policy asks for version %" PRId64
                 ", which is not in the repository",
                 m->name, missing);
    *ret = numbers;
    if (*ret_count)
        return NULL;
    mem_free(numbers);
    if (!found)
        return err_new(
            STATUS_INVALID_ARG,
            "no version of the model in '%s': expected at least one directory named by a number",
            m->dir);
    return err_new(STATUS_INVALID_ARG,
                   "at least one version must be available under the version policy of model '%s'",
                   m->name);
}

static void load_one(struct repo *r, struct repo_model *m, size_t index,
                     const struct Inference__ModelConfig *proto)
{
    struct repo_version *rv = &m->versions[index];
    LOG_INFO("loading: %s:%" PRId64, m->name, rv->number);
    struct serve_version *v = NULL;
    struct err *e = load_version(&r->settings.context, m->name, m->dir, rv->number, proto, &v);
    if (e) {
        LOG_ERROR("failed to load '%s' version %" PRId64 ": %s: %s", m->name, rv->number,
                  status_text(err_code(e)), err_message(e));
        set_state(r, rv, TABLE_UNAVAILABLE, err_message(e), NULL);
        err_free(e);
        return;
    }
    LOG_INFO("successfully loaded '%s' version %" PRId64, m->name, rv->number);
    set_state(r, rv, TABLE_READY, NULL, v);
}

/* A model that has no versions to load is shown as one unavailable entry, with why. */
static void load_failed(struct repo *r, struct repo_model *m, struct err *e)
{
    LOG_ERROR("failed to load '%s': %s", m->name, err_message(e));
    add_version(r, m, 0, TABLE_UNAVAILABLE, err_message(e));
    mutex_lock(&r->lock);
    publish(r);
    mutex_unlock(&r->lock);
    err_free(e);
}

static void load_model(struct repo *r, struct repo_model *m)
{
    struct Inference__ModelConfig *proto = NULL;
    int64_t *numbers = NULL;
    size_t count = 0;
    struct err *e = NULL;
    if (m->twice)
        e = err_new(STATUS_INVALID_ARG,
                    "model '%s' is in more than one repository; its name must be unique", m->name);
    if (!e)
        e = load_read_config(&r->settings.context, m->dir, &proto);
    if (!e)
        e = find_versions(m, proto, &numbers, &count);
    if (e) {
        load_failed(r, m, e);
    } else {
        for (size_t i = 0; i < count; i++)
            add_version(r, m, numbers[i], TABLE_LOADING, NULL);
        for (size_t i = 0; i < count; i++)
            load_one(r, m, i, proto);
    }
    mem_free(numbers);
    config_free_proto(proto);
}

static void loader(void *arg)
{
    struct repo *r = arg;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);
        if (i >= r->model_count)
            return;
        load_model(r, &r->models[i]);
    }
}

static size_t count_failed(const struct repo *r)
{
    size_t failed = 0;
    for (size_t i = 0; i < r->model_count; i++) {
        const struct repo_model *m = &r->models[i];
        bool all_ready = m->version_count > 0;
        for (size_t k = 0; k < m->version_count; k++)
            all_ready = all_ready && m->versions[k].state == TABLE_READY;
        failed += !all_ready;
    }
    return failed;
}

struct err *repo_load_all(struct repo *r, size_t *ret_failed)
{
    struct err *e = scan(r);
    if (e)
        return e;
    struct thread *threads[MAX_LOAD_THREADS] = {0};
    size_t helpers =
        r->settings.load_threads < MAX_LOAD_THREADS ? r->settings.load_threads : MAX_LOAD_THREADS;
    if (helpers > r->model_count)
        helpers = r->model_count;
    atomic_store(&r->next, 0);
    /* The calling thread loads too; a helper that cannot be started only makes it slower. */
    for (size_t i = 1; i < helpers; i++)
        err_free(thread_start("loader", loader, r, &threads[i]));
    loader(r);
    for (size_t i = 1; i < helpers; i++)
        thread_join(threads[i]);
    *ret_failed = count_failed(r);
    return NULL;
}

void repo_unload_all(struct repo *r)
{
    if (!r->model_count)
        return;
    mutex_lock(&r->lock);
    for (size_t i = 0; i < r->model_count; i++)
        for (size_t k = 0; k < r->models[i].version_count; k++)
            if (r->models[i].versions[k].state == TABLE_READY)
                r->models[i].versions[k].state = TABLE_UNLOADING;
    publish(r);
    mutex_unlock(&r->lock);
    table_settle(r->table);
    for (size_t i = 0; i < r->model_count; i++)
        for (size_t k = 0; k < r->models[i].version_count; k++) {
            struct repo_version *v = &r->models[i].versions[k];
            if (!v->version)
                continue;
            version_drain(v->version);
            version_free(v->version);
            set_state(r, v, TABLE_UNAVAILABLE, "unloaded", NULL);
        }
}

void repo_free(struct repo *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->model_count; i++) {
        struct repo_model *m = &r->models[i];
        for (size_t k = 0; k < m->version_count; k++)
            mem_free(m->versions[k].reason);
        mem_free(m->versions);
        mem_free(m->name);
        mem_free(m->dir);
    }
    mem_free(r->models);
    mutex_fini(&r->lock);
    mem_free(r);
}
