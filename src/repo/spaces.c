#include "repo/spaces.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "repo/jobs.h"
#include "repo/models.h"
#include "repo/override.h"
#include "repo/repo_priv.h"

#include <stdlib.h>
#include <string.h>

#define BIT(i) (UINT64_C(1) << (i))

uint64_t spaces_places(const struct repo *r, const char *space)
{
    if (!r->settings.namespacing)
        return UINT64_MAX;
    uint64_t places = 0;
    for (size_t i = 0; i < r->settings.path_count; i++)
        if (strcmp(r->settings.paths[i], space) == 0)
            places |= BIT(i);
    return places;
}

static int spaces_ascending(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct spaces_list spaces_of(const struct repo *r, uint64_t places)
{
    struct spaces_list l = {0};
    if (!r->settings.namespacing)
        l.at[l.count++] = "";
    for (size_t i = 0; r->settings.namespacing && i < r->settings.path_count; i++)
        if (places & BIT(i))
            l.at[l.count++] = r->settings.paths[i];
    qsort(l.at, l.count, sizeof(*l.at), spaces_ascending);
    return l;
}

void spaces_mean(struct repo *r, struct repo_model *m)
{
    if (m->meant)
        return;
    m->meant = true;
    models_name(r, m->name)->used = true;
    if (r->settings.namespacing)
        models_publish_soon(r);
}

const struct repo_model *spaces_find(const struct repo *r, const char *name, uint32_t *ret_count)
{
    const struct repo_name *n = models_name(r, name);
    const struct repo_model *found = NULL;
    *ret_count = 0;
    for (const struct repo_model *m = n ? n->first : NULL; m; m = m->namesake)
        if (m->meant) {
            found = m;
            ++*ret_count;
        }
    return *ret_count == 1 ? found : NULL;
}

struct repo_model *spaces_step(const struct repo *r, const struct repo_model *m, const char *name)
{
    struct repo_model *own = models_find(r, m->space, name);
    uint32_t ignored;
    if (!r->settings.namespacing || (own && own->meant))
        return own;
    const struct repo_model *only = spaces_find(r, name, &ignored);
    return only ? models_find(r, only->space, name) : NULL;
}

bool spaces_awaits(const struct repo *r, const struct repo_model *m, const struct repo_model *step)
{
    if (r->settings.mode == REPO_MODE_EXPLICIT)
        return true;
    const struct repo_model *own = models_find(r, m->space, step->name);
    return own == step || !own || !own->places;
}

/* One model of an operation on a name. */
struct target {
    struct join *join;
    struct err *error;
};

/* An operation on a name; it ends when all its targets have ended. */
struct join {
    struct repo *repo;
    char *name;
    unsigned left; /* guarded by the repository's lock */
    repo_done_fn *done;
    void *owner;
    size_t count;
    struct target targets[];
};

static struct err *spaces_take(struct join *j, size_t i)
{
    struct err *e = j->targets[i].error;
    j->targets[i].error = NULL;
    return e;
}

/* The first error with this code; for INVALID_ARG: all messages, without duplicates. NULL if
 * there is none. */
static struct err *errors_of(struct join *j, enum status code)
{
    struct strbuf all = STRBUF_INIT;
    struct err *first = NULL;
    for (size_t i = 0; i < j->count; i++) {
        if (!j->targets[i].error || err_code(j->targets[i].error) != code)
            continue;
        struct err *e = spaces_take(j, i);
        if (!strstr(strbuf_str(&all), err_message(e)))
            strbuf_puts(&all, err_message(e));
        if (first)
            err_free(e);
        else
            first = e;
    }
    if (first && code == STATUS_INVALID_ARG) {
        err_free(first);
        first = err_new(code, "%s", strbuf_str(&all));
    }
    strbuf_fini(&all);
    return first;
}

static bool is_usual(const struct err *e)
{
    return err_code(e) == STATUS_INVALID_ARG || err_code(e) == STATUS_INTERNAL ||
           err_code(e) == STATUS_NOT_FOUND;
}

/* The error for the caller of the operation. */
static struct err *spaces_outcome(struct join *j)
{
    size_t missing = 0;
    for (size_t i = 0; i < j->count; i++) {
        const struct err *e = j->targets[i].error;
        if (e && !is_usual(e))
            return spaces_take(j, i);
        missing += e && err_code(e) == STATUS_NOT_FOUND;
    }
    struct err *e = errors_of(j, STATUS_INVALID_ARG);
    if (!e)
        e = errors_of(j, STATUS_INTERNAL);
    if (!e && missing == j->count)
        e = err_new(STATUS_INTERNAL,
                    "failed to load '%s', failed to poll from model repository: no repository has "
                    "a directory of this name",
                    j->name);
    if (e && missing == j->count)
        LOG_ERROR("%s", err_message(e));
    return e;
}

static void spaces_end(struct join *j)
{
    struct err *e = spaces_outcome(j);
    for (size_t i = 0; i < j->count; i++)
        err_free(spaces_take(j, i));
    j->done(j->owner, e);
    mem_free(j->name);
    mem_free(j);
}

static void spaces_leave(struct join *j)
{
    mutex_lock(&j->repo->lock);
    bool last = --j->left == 0;
    mutex_unlock(&j->repo->lock);
    if (last)
        spaces_end(j);
}

static void spaces_ended(void *owner, struct err *e)
{
    struct target *t = owner;
    t->error = e;
    spaces_leave(t->join);
}

static struct err *ask_one(struct repo *r, const struct repo_job *like, const char *space,
                           const char *name)
{
    struct repo_job *job = MEM_NEW(struct repo_job);
    *job = *like;
    return jobs_ask(r, job, space, name);
}

static void spaces_ask_all(struct repo *r, const struct repo_job *like, const struct spaces_list *l,
                           const char *name)
{
    struct join *j = mem_zalloc(sizeof(*j) + l->count * sizeof(*j->targets));
    j->repo = r;
    j->name = mem_strdup(name);
    j->done = like->done;
    j->owner = like->owner;
    j->count = l->count;
    j->left = 1 + (unsigned)l->count;
    struct repo_job mine = *like;
    mine.if_there = true;
    mine.done = spaces_ended;
    for (size_t i = 0; i < l->count; i++) {
        j->targets[i].join = j;
        mine.owner = &j->targets[i];
        struct err *e = ask_one(r, &mine, l->at[i], name);
        if (e)
            spaces_ended(&j->targets[i], e);
    }
    spaces_leave(j);
}

/* True if the client brings the whole model. */
static bool is_brought(const struct repo_job *job)
{
    const struct repo_load *what = &job->what;
    const struct repo_param *config = override_config(what->params, what->param_count);
    return what->archive || what->param_count > (config ? 1 : 0);
}

/* The spaces that have a model of the name, or could have one, in some places or in any. */
static struct err *spaces_with(struct repo *r, const char *name, uint64_t places,
                               struct spaces_list *ret)
{
    const struct repo_name *n;
    bool any = false;
    *ret = (struct spaces_list){0};
    mutex_lock(&r->lock);
    n = models_name(r, name);
    for (const struct repo_model *m = n ? n->first : NULL; m; m = m->namesake) {
        any = true;
        bool here = places == UINT64_MAX || (spaces_places(r, m->space) & places);
        if (here)
            ret->at[ret->count++] = m->space;
    }
    mutex_unlock(&r->lock);
    qsort(ret->at, ret->count, sizeof(*ret->at), spaces_ascending);
    if (any && !ret->count)
        return err_new(STATUS_NOT_FOUND, "model '%s' was not loaded from this repository", name);
    return NULL;
}

struct err *spaces_ask(struct repo *r, const struct repo_job *like, const char *name)
{
    if (!r->settings.namespacing || is_brought(like))
        return ask_one(r, like, "", name);
    struct spaces_list l;
    struct repo_job mine = *like;
    if (like->action == REPO_LOAD) {
        l = spaces_of(r, like->places);
    } else {
        struct err *e = spaces_with(r, name, like->places, &l);
        if (e)
            return e;
        mine.places = UINT64_MAX; /* each target has only one place */
    }
    if (l.count == 0)
        return ask_one(r, &mine, "", name);
    if (l.count == 1)
        return ask_one(r, &mine, l.at[0], name);
    spaces_ask_all(r, &mine, &l, name);
    return NULL;
}
