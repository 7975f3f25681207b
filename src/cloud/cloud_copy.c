#include "cloud/copy.h"

#include "base/mem.h"
#include "cloud/fetch.h"
#include "os/files/disk.h"
#include "os/files/file.h"

#include <string.h>

/* A listing of one model that a crew's thread makes. */
struct ask {
    struct crew_job job;
    struct cloud *c;
    const char *model;
    struct cloud_view *view;
    struct err *error;
    struct mutex lock; /* rank LEAF; guards done */
    struct mutex_cond changed;
    bool done;
};

static void ask_main(struct crew_job *job, void *session)
{
    struct ask *a = LIST_ITEM(job, struct ask, job);
    a->error = cloud_list(a->c, session, a->model, &a->view);
    mutex_lock(&a->lock);
    a->done = true;
    mutex_cond_signal(&a->changed);
    mutex_unlock(&a->lock);
}

static struct err *list_model(struct cloud *c, const char *model, struct cloud_view **ret)
{
    struct ask a = {.job = {.run = ask_main}, .c = c, .model = model};
    mutex_init(&a.lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&a.changed);
    crew_do(c->control, &a.job);
    mutex_lock(&a.lock);
    while (!a.done)
        mutex_cond_wait(&a.changed, &a.lock);
    mutex_unlock(&a.lock);
    mutex_cond_fini(&a.changed);
    mutex_fini(&a.lock);
    *ret = a.view;
    return a.error;
}

static struct err *cloud_copy_find(struct cloud_copy *k, bool known)
{
    struct cloud *c = k->c;
    if (known) {
        mutex_lock(&c->lock);
        k->view = cloud_view_ref(c->view);
        mutex_unlock(&c->lock);
    }
    if (k->view)
        listing_model(&k->view->listing, k->model, &k->first, &k->count);
    if (k->count)
        return NULL;
    cloud_view_unref(k->view);
    k->view = NULL;
    struct err *e = list_model(c, k->model, &k->view);
    if (e)
        return e;
    listing_model(&k->view->listing, k->model, &k->first, &k->count);
    return k->count ? NULL : err_new(STATUS_NOT_FOUND, "'%s' has no model '%s'", c->path, k->model);
}

/* Makes the directories of all objects, also those of versions that are not downloaded yet. */
static struct err *make_dirs(struct cloud_copy *k)
{
    struct err *e = NULL;
    struct strbuf last = STRBUF_INIT;
    size_t skip = strlen(k->model) + 1;
    for (size_t i = k->first; !e && i < k->first + k->count; i++) {
        const char *name = k->view->listing.objects[i].name + skip;
        const char *slash = strrchr(name, '/');
        size_t len = slash ? (size_t)(slash - name) : 0;
        if (!len || (len == last.len && memcmp(strbuf_str(&last), name, len) == 0))
            continue;
        last.len = 0;
        strbuf_append(&last, name, len);
        char *dir = file_join(k->dir, strbuf_str(&last));
        e = disk_make_dirs(dir);
        mem_free(dir);
    }
    strbuf_fini(&last);
    return e;
}

struct err *cloud_copy_new(struct cloud *c, const char *model, bool known, struct cloud_copy **ret)
{
    struct cloud_copy *k = MEM_NEW(struct cloud_copy);
    k->c = c;
    k->model = mem_strdup(model);
    struct err *e = cloud_copy_find(k, known);
    if (!e)
        e = listing_check(&k->view->listing, k->first, k->count);
    if (!e)
        e = stash_model_dir(c->stash, model, &k->dir);
    if (!e)
        e = make_dirs(k);
    if (!e)
        e = fetch_part(k, LISTING_REST);
    *ret = k; /* also on failure, so that the caller sees whether it changed */
    return e;
}

void cloud_copy_free(struct cloud_copy *k)
{
    if (!k)
        return;
    if (k->dir)
        stash_drop_model_dir(k->dir);
    cloud_view_unref(k->view);
    mem_free(k->dir);
    mem_free(k->model);
    mem_free(k);
}

const char *cloud_copy_dir(const struct cloud_copy *k)
{
    return k->dir;
}

struct err *cloud_copy_version(struct cloud_copy *k, int64_t version)
{
    return fetch_part(k, version);
}

uint64_t cloud_copy_stamp(const struct cloud_copy *k, int64_t part)
{
    return listing_stamp(&k->view->listing, k->first, k->count, part);
}

bool cloud_copy_changed(const struct cloud_copy *k)
{
    return k && k->changed;
}
