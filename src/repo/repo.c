#include "repo/repo.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "metrics/recent.h"
#include "os/thread.h"
#include "repo/agents.h"
#include "repo/jobs.h"
#include "repo/left.h"
#include "repo/models.h"
#include "repo/operate.h"
#include "repo/override.h"
#include "repo/places.h"
#include "repo/repo_priv.h"
#include "repo/retire.h"
#include "repo/spaces.h"
#include "repo/watch.h"

#include <string.h>

/* How long changes may stay unpublished during the start. */
#define PUBLISH_FIRST_NS TIME_MS(5)
#define PUBLISH_MOST_NS  TIME_MS(80)

struct repo *repo_new(const struct repo_settings *settings, struct serve_table *table)
{
    struct repo *r = MEM_NEW(struct repo);
    r->settings = *settings;
    if (r->settings.load_threads < 1)
        r->settings.load_threads = 1;
    if (r->settings.load_threads > REPO_MAX_LOADERS / 2)
        r->settings.load_threads = REPO_MAX_LOADERS / 2;
    CHECK(settings->path_count <= REPO_MAX_PATHS);
    r->table = table;
    r->agents = agents_new(settings->agent_directory);
    r->settings.context.table = table;
    mutex_init(&r->lock, MUTEX_RANK_REPO);
    mutex_cond_init(&r->changed);
    list_init(&r->ready);
    list_init(&r->spent);
    list_init(&r->looks);
    list_init(&r->retired);
    list_init(&r->leaving);
    list_init(&r->drained);
    places_open(r);
    return r;
}

/* How many models of the start have not ended, and how many of them failed. */
struct count {
    struct mutex lock; /* rank LEAF */
    struct mutex_cond changed;
    size_t left;
    size_t failed;
};

static void counted(void *owner, struct err *e)
{
    struct count *c = owner;
    mutex_lock(&c->lock);
    c->left--;
    c->failed += e != NULL;
    if (!c->left)
        mutex_cond_signal(&c->changed);
    mutex_unlock(&c->lock);
    err_free(e);
}

static struct err *ask_load(struct repo *r, const char *space, const char *name, struct count *c)
{
    struct repo_job *job = MEM_NEW(struct repo_job);
    *job = (struct repo_job){
        .action = REPO_LOAD, .places = UINT64_MAX, .first = true, .done = counted, .owner = c};
    mutex_lock(&c->lock);
    c->left++;
    mutex_unlock(&c->lock);
    struct err *e = jobs_ask(r, job, space, name);
    if (e)
        counted(c, err_copy(e));
    return e;
}

/* A model to load at the start. */
struct wanted {
    const char *space;
    char *name; /* owned */
};

struct wanted_list {
    struct wanted *items;
    size_t count;
};

static void want(struct wanted_list *l, const char *space, const char *name)
{
    l->items = mem_realloc(l->items, (l->count + 1) * sizeof(*l->items));
    l->items[l->count++] = (struct wanted){space, mem_strdup(name)};
}

/* Adds every existing model with the name; if there is none, the name alone. */
static void want_named(const struct repo *r, struct wanted_list *l, const char *name)
{
    const struct repo_name *n = models_name(r, name);
    bool found = false;
    for (const struct repo_model *m = n ? n->first : NULL; m; m = m->namesake) {
        if (m->places)
            want(l, m->space, name);
        found = found || m->places;
    }
    if (!found)
        want(l, "", name);
}

/* The models to load at the start; the caller frees the list. */
static struct wanted_list startup_models(struct repo *r)
{
    const struct repo_settings *s = &r->settings;
    bool all = s->mode != REPO_MODE_EXPLICIT ||
               (s->startup_count == 1 && strcmp(s->startup_models[0], "*") == 0);
    struct wanted_list l = {0};
    mutex_lock(&r->lock);
    for (size_t i = 0; all && i < r->model_count; i++)
        want(&l, r->models[i]->space, r->models[i]->name);
    for (size_t i = 0; !all && i < s->startup_count; i++)
        want_named(r, &l, s->startup_models[i]);
    mutex_unlock(&r->lock);
    return l;
}

static struct err *check_startup(const struct repo_settings *s)
{
    for (size_t i = 0; i < s->startup_count; i++)
        if (strcmp(s->startup_models[i], "*") == 0 && s->startup_count > 1)
            return err_new(
                STATUS_INVALID_ARG,
                "Wildcard model name '*' must be the ONLY startup model if specified at all.");
    return NULL;
}

static void set_starting(struct repo *r, bool starting)
{
    mutex_lock(&r->lock);
    r->starting = starting;
    models_publish_rest(r);
    mutex_unlock(&r->lock);
}

/* Publishes the states of the models from time to time, until all have ended. */
static void wait_for_start(struct repo *r, struct count *c)
{
    bool more = true;
    for (time_ns period = PUBLISH_FIRST_NS; more;
         period = period * 2 < PUBLISH_MOST_NS ? period * 2 : PUBLISH_MOST_NS) {
        mutex_lock(&c->lock);
        time_ns until = clock_now_ns() + period;
        while (c->left && clock_now_ns() < until)
            mutex_cond_wait_until(&c->changed, &c->lock, until);
        more = c->left > 0;
        mutex_unlock(&c->lock);
        set_starting(r, more);
    }
}

/* True if a model to load lies where it was searched. */
static bool repo_is_there(struct repo *r, const struct wanted *w)
{
    mutex_lock(&r->lock);
    const struct repo_model *m = models_find(r, w->space, w->name);
    bool there = m && m->places;
    mutex_unlock(&r->lock);
    return there;
}

/* True if it was not asked for before. */
static bool is_new(struct map *asked, const struct wanted *w)
{
    struct strbuf key = STRBUF_INIT;
    strbuf_puts(&key, w->space);
    strbuf_putc(&key, '\0');
    strbuf_puts(&key, w->name);
    bool is = !map_put(asked, key.data, key.len, asked);
    strbuf_fini(&key);
    return is;
}

/* Asks for the models of the start that were not asked for yet.
 * all  include models that no repository has so far */
static void repo_ask_all(struct repo *r, struct count *c, struct map *asked, bool all)
{
    struct wanted_list l = startup_models(r);
    jobs_hold(r, true); /* until the models that ensembles wait for are queued too */
    for (size_t i = 0; i < l.count; i++) {
        const struct wanted *w = &l.items[i];
        if ((all || repo_is_there(r, w)) && is_new(asked, w)) {
            if (r->settings.mode == REPO_MODE_POLL)
                watch_note(r, w->space, w->name);
            struct err *refused = ask_load(r, w->space, w->name, c);
            if (refused) {
                LOG_ERROR("failed to load '%s': %s", w->name, err_message(refused));
                recent_load(r->settings.recent, w->name, 0, err_message(refused));
            }
            err_free(refused);
        }
        mem_free(l.items[i].name);
    }
    jobs_hold(r, false);
    mem_free(l.items);
}

struct err *repo_load_all(struct repo *r, size_t *ret_failed)
{
    struct places_look look;
    uint64_t slow;
    uint64_t unread = 0;
    struct err *e = check_startup(&r->settings);
    if (!e)
        e = places_error(r);
    if (!e) {
        places_begin(r, &look);
        e = watch_look(r, &look, UINT64_MAX, clock_now_ns() + PLACES_PATIENCE_NS, &slow);
    }
    if (e)
        return e;
    struct count c = {.lock = MUTEX_INIT(MUTEX_RANK_LEAF)};
    struct map asked = MAP_INIT;
    mutex_cond_init(&c.changed);
    /* while a store is waited for, models of other repositories are shown at once */
    set_starting(r, !slow);
    repo_ask_all(r, &c, &asked, !slow);
    if (slow) {
        e = watch_look(r, &look, slow, TIME_NEVER, &unread);
        err_free(e); /* only of stores, which log it themselves */
        repo_ask_all(r, &c, &asked, true);
    }
    wait_for_start(r, &c);
    *ret_failed = c.failed + (size_t)__builtin_popcountll(unread);
    map_fini(&asked);
    mutex_cond_fini(&c.changed);
    mutex_fini(&c.lock);
    return r->settings.mode == REPO_MODE_POLL && r->settings.poll_secs ? watch_start(r) : NULL;
}

static struct err *check_mode(const struct repo *r)
{
    struct err *refused = table_refuses(r->table);
    if (refused)
        return refused;
    if (r->settings.mode == REPO_MODE_EXPLICIT)
        return NULL;
    return err_new(STATUS_UNAVAILABLE,
                   "explicit model load / unload is not allowed if polling is enabled");
}

static struct err *repo_check_name(const char *name)
{
    const char *from = name + strspn(name, " \t\r\n\v\f");
    size_t len = strlen(from);
    while (len && strchr(" \t\r\n\v\f", from[len - 1]))
        len--;
    if (!len)
        return err_new(STATUS_INVALID_ARG,
                       "Model name cannot be empty. Please enter a valid name to deploy.");
    if ((len == 2 && from[0] == '.' && from[1] == '.') || memchr(from, '/', len))
        return err_new(STATUS_INVALID_ARG,
                       "invalid model name '%s', model name must not contain path traversal "
                       "characters",
                       name);
    return NULL;
}

struct err *repo_load(struct repo *r, const struct repo_load *what, repo_done_fn *done, void *owner)
{
    uint64_t places;
    struct err *e = check_mode(r);
    if (!e)
        e = repo_check_name(what->model);
    if (!e)
        e = repo_places(r, what->repository, &places);
    if (!e)
        e = override_check(what->params, what->param_count);
    if (e)
        return e;
    struct repo_job job = {
        .action = REPO_LOAD, .what = *what, .places = places, .done = done, .owner = owner};
    return spaces_ask(r, &job, what->model);
}

struct err *repo_unload(struct repo *r, const char *model, const char *repository,
                        bool unload_dependents, repo_done_fn *done, void *owner)
{
    uint64_t places;
    struct err *e = check_mode(r);
    if (!e)
        e = repo_check_name(model);
    if (!e)
        e = repo_places(r, repository, &places);
    if (e)
        return e;
    struct repo_job job = {.action = REPO_UNLOAD,
                           .places = places,
                           .up = unload_dependents,
                           .down = unload_dependents,
                           .done = done,
                           .owner = owner};
    return spaces_ask(r, &job, model);
}

struct err *repo_rescan(struct repo *r, repo_done_fn *done, void *owner)
{
    return watch_ask(r, done, owner);
}

/* A thread that waits for an operation. */
struct waiter {
    struct mutex lock; /* rank LEAF */
    struct mutex_cond done;
    bool is_done;
    struct err *error;
};

static void waiter_init(struct waiter *w)
{
    *w = (struct waiter){.is_done = false};
    mutex_init(&w->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&w->done);
}

static void repo_waited(void *owner, struct err *e)
{
    struct waiter *w = owner;
    mutex_lock(&w->lock);
    w->is_done = true;
    w->error = e;
    mutex_cond_signal(&w->done);
    mutex_unlock(&w->lock);
}

/* Waits for the operation unless it was refused, and calls jobs_wait_end. */
static struct err *repo_wait_for(struct repo *r, struct waiter *w, struct err *refused)
{
    if (!refused) {
        mutex_lock(&w->lock);
        while (!w->is_done)
            mutex_cond_wait(&w->done, &w->lock);
        mutex_unlock(&w->lock);
    }
    jobs_wait_end(r);
    mutex_cond_fini(&w->done);
    mutex_fini(&w->lock);
    return refused ? refused : w->error;
}

struct err *repo_load_wait(struct repo *r, const struct repo_load *what)
{
    struct waiter w;
    struct err *e = check_mode(r);
    if (!e)
        e = jobs_wait_begin(r, what->model);
    if (e)
        return e;
    waiter_init(&w);
    return repo_wait_for(r, &w, repo_load(r, what, repo_waited, &w));
}

struct err *repo_unload_wait(struct repo *r, const char *model, const char *repository,
                             bool unload_dependents)
{
    struct waiter w;
    struct err *e = jobs_wait_begin(r, NULL);
    if (e)
        return e;
    waiter_init(&w);
    return repo_wait_for(r, &w,
                         repo_unload(r, model, repository, unload_dependents, repo_waited, &w));
}

struct err *repo_rescan_wait(struct repo *r)
{
    struct waiter w;
    struct err *e = jobs_wait_begin(r, NULL);
    if (e)
        return e;
    waiter_init(&w);
    return repo_wait_for(r, &w, repo_rescan(r, repo_waited, &w));
}

static bool repo_named(const char *path, const char *name)
{
    if (strcmp(path, name) == 0)
        return true;
    size_t end = strlen(path);
    while (end && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start && path[start - 1] != '/')
        start--;
    return end - start == strlen(name) && strncmp(path + start, name, end - start) == 0;
}

struct err *repo_places(const struct repo *r, const char *name, uint64_t *ret)
{
    struct err *refused = table_refuses(r->table);
    if (refused)
        return refused;
    if (!name || !*name) {
        *ret = UINT64_MAX;
        return NULL;
    }
    uint64_t found = 0;
    unsigned count = 0;
    for (size_t i = 0; i < r->settings.path_count; i++)
        if (repo_named(r->settings.paths[i], name)) {
            found |= UINT64_C(1) << i;
            count++;
        }
    if (!count)
        return err_new(STATUS_NOT_FOUND,
                       "repository '%s' is not served; expected the path of a repository as the "
                       "server was given it, or its last component",
                       name);
    if (count > 1)
        return err_new(STATUS_INVALID_ARG, "several repositories are called '%s'; use a path",
                       name);
    *ret = found;
    return NULL;
}

void repo_each_agent(struct repo *r, repo_agent_fn *fn, void *arg)
{
    agents_each(r->agents, fn, arg);
}

void repo_refuse(struct repo *r)
{
    places_cancel(r);
    jobs_refuse(r);
}

void repo_unload_all(struct repo *r)
{
    jobs_refuse(r);
    jobs_join(r);
    watch_stop(r);
    operate_unload_all(r);
    retire_stop(r);
}

void repo_say_left(struct repo *r)
{
    left_say_at_work(r);
    retire_say_left(r);
}

void repo_busy(struct repo *r, struct repo_left *ret)
{
    left_busy(r, ret);
}

void repo_live(struct repo *r, struct repo_left *ret)
{
    left_live(r, ret);
}

void repo_left_fini(struct repo_left *l)
{
    strbuf_fini(&l->lines);
}

void repo_free(struct repo *r)
{
    if (!r)
        return;
    jobs_refuse(r);
    jobs_join(r);
    watch_stop(r);
    models_free(r);
    places_close(r);
    agents_free(r->agents);
    map_fini(&r->unfit);
    mutex_cond_fini(&r->changed);
    mutex_fini(&r->lock);
    mem_free(r);
}
