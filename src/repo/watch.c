#include "repo/watch.h"

#include "base/log.h"
#include "base/log_text.h"
#include "base/mem.h"
#include "codec/pb_utf8.h"
#include "os/files/file.h"
#include "os/thread.h"
#include "repo/jobs.h"
#include "repo/models.h"
#include "repo/places.h"
#include "repo/repo_priv.h"
#include "repo/spaces.h"
#include "repo/load/local.h"

#include <string.h>

/* What one look found: the names, and the repositories that have them. */
struct view {
    struct map places; /* name -> a uint64_t on the heap */
};

/* Says once that a directory cannot be served: no protocol could ask for its name. */
static void watch_tell_unfit(struct repo *r, size_t place, const char *name)
{
    char *path = file_join(r->settings.paths[place], name);
    mutex_lock(&r->lock);
    bool told = r->unfit.count >= REPO_MAX_UNFIT || map_put(&r->unfit, path, strlen(path), r);
    mutex_unlock(&r->lock);
    char *shown = log_text_shown(path);
    if (!told)
        LOG_WARN("'%s' is left out: its name is not UTF-8, so no client could ask for it: rename "
                 "the directory",
                 shown);
    mem_free(shown);
    mem_free(path);
}

static void note_place(struct repo *r, struct view *v, const char *name, size_t place)
{
    if (!pb_utf8_valid(name, strlen(name))) {
        watch_tell_unfit(r, place, name);
        return;
    }
    uint64_t *places = map_get(&v->places, name, strlen(name));
    if (!places) {
        places = MEM_NEW(uint64_t);
        map_put(&v->places, name, strlen(name), places);
    }
    *places |= UINT64_C(1) << place;
}

static void view_fini(struct view *v)
{
    size_t pos = 0;
    void *value;
    while (map_next(&v->places, &pos, NULL, &value))
        mem_free(value);
    map_fini(&v->places);
}

/* Adds the models of a name that are not known yet. Returns true if there were any. Lock held. */
static bool add_found(struct repo *r, const char *name, uint64_t places)
{
    struct spaces_list spaces = spaces_of(r, places);
    bool added = false;
    for (size_t i = 0; i < spaces.count; i++) {
        if (models_find(r, spaces.at[i], name))
            continue;
        models_of(r, spaces.at[i], name)->places = places & spaces_places(r, spaces.at[i]);
        added = true;
    }
    return added;
}

/* A new look is due when there are this many models more than the last look found. */
#define LOOK_SOME 64u

/* Takes over what lies in the repositories whose bits are in `read`. What was known of other
 * repositories is kept. Lock held. */
static void take_view(struct repo *r, const struct view *v, uint64_t read)
{
    bool changed = false;
    for (size_t i = 0; i < r->model_count; i++) {
        struct repo_model *m = r->models[i];
        const uint64_t *now = map_get(&v->places, m->name, strlen(m->name));
        uint64_t found = now ? *now & spaces_places(r, m->space) : 0;
        uint64_t places = (m->places & ~read) | found;
        changed = changed || places != m->places;
        m->places = places;
    }
    size_t pos = 0;
    const char *name;
    void *value;
    while (map_next(&v->places, &pos, &name, &value)) {
        changed = add_found(r, name, *(uint64_t *)value) || changed;
    }
    models_prune(r);
    r->overgrown = false;
    r->look_at = 2 * r->model_count + LOOK_SOME;
    if (changed)
        models_publish(r);
}

struct err *watch_look(struct repo *r, const struct places_look *look, uint64_t places,
                       time_ns until, uint64_t *ret_unread)
{
    struct view v = {0};
    uint64_t read = 0;
    struct err *first = NULL;
    *ret_unread = 0;
    for (size_t p = 0; p < r->settings.path_count; p++) {
        struct local_names names;
        if (!(places & UINT64_C(1) << p))
            continue;
        struct err *e = places_names(r, p, look, until, &names);
        if (e) {
            bool cloud = places_is_cloud(r, p); /* the store has logged the reason */
            *ret_unread |= cloud ? UINT64_C(1) << p : 0;
            if (first || cloud)
                err_free(e);
            else
                first = e;
            continue;
        }
        read |= UINT64_C(1) << p;
        for (size_t i = 0; i < names.count; i++)
            note_place(r, &v, names.names[i], p);
        local_names_fini(&names);
    }
    mutex_lock(&r->lock);
    take_view(r, &v, read);
    mutex_unlock(&r->lock);
    view_fini(&v);
    return first;
}

/* The stamp of a name that lies in several places. Nothing is done about it until that changes. */
#define SEVERAL UINT64_MAX

/* A number for how a model looks now; 0 if unknown. */
static uint64_t stamp_of(const struct repo *r, const char *name, uint64_t places)
{
    if (!places)
        return 0;
    if (places & (places - 1))
        return SEVERAL;
    return places_stamp(r, (size_t)__builtin_ctzll(places), name);
}

void watch_note(struct repo *r, const char *space, const char *name)
{
    mutex_lock(&r->lock);
    struct repo_model *m = models_find(r, space, name);
    uint64_t places = m ? m->places : 0;
    mutex_unlock(&r->lock);
    uint64_t stamp = stamp_of(r, name, places);
    mutex_lock(&r->lock);
    if ((m = models_find(r, space, name)))
        m->tried = stamp;
    mutex_unlock(&r->lock);
}

static void poll_done(void *owner, struct err *e)
{
    (void)owner; /* the log and the table show it */
    err_free(e);
}

/* Queues the job that a change of a model asks for, if there is a change. */
static void poll_model(struct repo *r, const char *space, const char *name)
{
    mutex_lock(&r->lock);
    const struct repo_model *m = models_find(r, space, name);
    bool under_way = !m || m->busy || !list_empty(&m->jobs);
    uint64_t places = m ? m->places : 0;
    uint64_t tried = m ? m->tried : 0;
    bool wanted = m && m->wanted;
    mutex_unlock(&r->lock);
    if (under_way || (!places && !wanted))
        return;
    uint64_t stamp = stamp_of(r, name, places);
    if (places && (!stamp || stamp == tried))
        return;
    mutex_lock(&r->lock);
    struct repo_model *now = models_find(r, space, name);
    if (now)
        now->tried = stamp;
    mutex_unlock(&r->lock);
    if (stamp == SEVERAL) {
        LOG_ERROR("model '%s' appears in two or more repositories: what serves stays", name);
        return;
    }
    struct repo_job *job = MEM_NEW(struct repo_job);
    *job = (struct repo_job){
        .action = places ? REPO_LOAD : REPO_UNLOAD, .places = UINT64_MAX, .done = poll_done};
    err_free(jobs_ask(r, job, space, name));
}

/* A look that does not wait for stores. */
static struct err *look_now(struct repo *r)
{
    struct places_look look;
    uint64_t unread;
    places_begin(r, &look);
    return watch_look(r, &look, UINT64_MAX, clock_now_ns() + PLACES_PATIENCE_NS, &unread);
}

static void poll_all(struct repo *r)
{
    struct err *e = look_now(r);
    if (e)
        LOG_ERROR("failed to poll: %s", err_message(e));
    err_free(e);
    mutex_lock(&r->lock);
    size_t count = r->model_count;
    char **names = mem_alloc((count + 1) * sizeof(char *));
    const char **spaces = mem_alloc((count + 1) * sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        names[i] = mem_strdup(r->models[i]->name);
        spaces[i] = r->models[i]->space;
    }
    mutex_unlock(&r->lock);
    for (size_t i = 0; i < count; i++) {
        poll_model(r, spaces[i], names[i]);
        mem_free(names[i]);
    }
    mem_free(names);
    mem_free(spaces);
}

/* Answers the callers that asked before the look began. */
static void look_for(struct repo *r, struct list *who)
{
    struct err *e = look_now(r);
    struct list *node;
    while ((node = list_pop(who))) {
        struct repo_look *look = LIST_ITEM(node, struct repo_look, node);
        look->done(look->owner, err_copy(e));
        mem_free(look);
    }
    err_free(e);
}

/* The server stops: looks that were asked for and have not begun end with an error. */
static void refuse_looks(struct repo *r)
{
    struct list refused;
    list_init(&refused);
    mutex_lock(&r->lock);
    list_splice(&refused, &r->looks);
    mutex_unlock(&r->lock);
    struct list *node;
    while ((node = list_pop(&refused))) {
        struct repo_look *look = LIST_ITEM(node, struct repo_look, node);
        look->done(look->owner, err_new(STATUS_UNAVAILABLE, "Server exiting"));
        mem_free(look);
    }
}

static void watcher_main(void *arg)
{
    struct repo *r = arg;
    const time_ns period = TIME_S((time_ns)r->settings.poll_secs);
    time_ns next = clock_now_ns() + period;
    mutex_lock(&r->lock);
    while (!r->stopping) {
        time_ns until = r->watching ? next : TIME_NEVER;
        if (!list_empty(&r->looks) || r->overgrown) {
            struct list who;
            list_init(&who);
            list_splice(&who, &r->looks);
            mutex_unlock(&r->lock);
            look_for(r, &who);
            mutex_lock(&r->lock);
        } else if (clock_now_ns() < until) {
            mutex_cond_wait_until(&r->changed, &r->lock, until);
        } else {
            mutex_unlock(&r->lock);
            poll_all(r);
            next = clock_now_ns() + period;
            mutex_lock(&r->lock);
        }
    }
    mutex_unlock(&r->lock);
    refuse_looks(r); /* their clients wait now, and not only until the models are unloaded */
}

/* Lock held. */
static struct err *watch_start_thread(struct repo *r)
{
    if (r->stopping)
        return err_new(STATUS_UNAVAILABLE, "Server exiting");
    return r->watcher ? NULL : thread_start("repo", watcher_main, r, &r->watcher);
}

struct err *watch_ask(struct repo *r, repo_done_fn *done, void *owner)
{
    struct repo_look *look = MEM_NEW(struct repo_look);
    *look = (struct repo_look){.done = done, .owner = owner};
    mutex_lock(&r->lock);
    struct err *e = watch_start_thread(r);
    if (!e)
        list_append(&r->looks, &look->node);
    mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
    if (e)
        mem_free(look);
    return e;
}

void watch_growth(struct repo *r)
{
    if (r->overgrown || r->model_count <= r->look_at)
        return;
    struct err *e = watch_start_thread(r);
    r->overgrown = !e;
    mutex_cond_broadcast(&r->changed);
    err_free(e); /* the next model tries again */
}

struct err *watch_start(struct repo *r)
{
    mutex_lock(&r->lock);
    r->watching = true;
    struct err *e = watch_start_thread(r);
    mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
    return e;
}

void watch_stop(struct repo *r)
{
    thread_join(r->watcher);
    r->watcher = NULL;
}
