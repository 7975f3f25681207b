#include "serve/table.h"

#include "base/check.h"
#include "base/map.h"
#include "base/mem.h"
#include "os/mutex.h"
#include "serve/version.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct table_snapshot {
    atomic_uint refs;
    struct serve_table *table;
    struct map by_name; /* name -> table_model; the shared models of a name hang on that entry */
    struct table_model *models;
    uint32_t count;
    bool apart; /* models of one name are told apart */
    struct table_model *stand_ins;
    uint32_t stand_in_count;
};

struct serve_table {
    struct mutex lock; /* rank SNAPSHOT; guards current, live, views */
    struct mutex_cond released;
    struct table_snapshot *current;
    unsigned live;                /* snapshots that are not freed yet */
    atomic_bool refuses;          /* see table_refuse; orders nothing */
    _Atomic(uint64_t) generation; /* of current; released by table_publish, acquired by views */
    struct list views;
};

const char *table_state_name(enum table_state s)
{
    static const char *const names[] = {
        [TABLE_UNKNOWN] = "UNKNOWN",         [TABLE_READY] = "READY",
        [TABLE_UNAVAILABLE] = "UNAVAILABLE", [TABLE_UNLOADED] = "UNAVAILABLE",
        [TABLE_LOADING] = "LOADING",         [TABLE_UNLOADING] = "UNLOADING",
    };
    return (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : names[0];
}

static const char *space_of(const struct table_model *m)
{
    return m->space ? m->space : "";
}

static int by_space_and_name(const void *a, const void *b)
{
    const struct table_model *x = a;
    const struct table_model *y = b;
    int order = strcmp(space_of(x), space_of(y));
    return order ? order : strcmp(x->name, y->name);
}

/* Links each shared model to the entry that its name leads to. */
static void link_shared(struct table_snapshot *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct table_model *m = &s->models[i];
        struct table_model *found = map_get(&s->by_name, m->name, strlen(m->name));
        if (!m->shared || !found)
            continue;
        m->namesake = found->namesake;
        found->namesake = m;
    }
}

static struct table_snapshot *snapshot_new(struct serve_table *t, struct table_model *models,
                                           uint32_t count, struct table_model *stand_ins,
                                           uint32_t stand_in_count)
{
    struct table_snapshot *s = MEM_NEW(struct table_snapshot);
    atomic_init(&s->refs, 1);
    s->table = t;
    s->models = models;
    s->count = count;
    s->stand_ins = stand_ins;
    s->stand_in_count = stand_in_count;
    if (count)
        qsort(models, count, sizeof(*models), by_space_and_name);
    for (uint32_t i = 0; i < count; i++)
        if (!models[i].shared)
            map_put(&s->by_name, models[i].name, strlen(models[i].name), &models[i]);
    for (uint32_t i = 0; i < stand_in_count; i++)
        map_put(&s->by_name, stand_ins[i].name, strlen(stand_ins[i].name), &stand_ins[i]);
    return s;
}

static void free_models(struct table_model *models, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < models[i].entry_count; k++)
            mem_free((char *)(uintptr_t)models[i].entries[k].reason);
        mem_free(models[i].entries);
        mem_free((char *)(uintptr_t)models[i].name);
        mem_free((char *)(uintptr_t)models[i].title);
    }
    mem_free(models);
}

static void snapshot_unref(struct table_snapshot *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct serve_table *t = s->table;
    map_fini(&s->by_name);
    free_models(s->models, s->count);
    free_models(s->stand_ins, s->stand_in_count);
    mem_free(s);
    mutex_lock(&t->lock);
    t->live--;
    mutex_cond_broadcast(&t->released);
    mutex_unlock(&t->lock);
}

struct serve_table *table_new(void)
{
    struct serve_table *t = MEM_NEW(struct serve_table);
    mutex_init(&t->lock, MUTEX_RANK_SNAPSHOT);
    mutex_cond_init(&t->released);
    list_init(&t->views);
    t->current = snapshot_new(t, NULL, 0, NULL, 0);
    t->live = 1;
    atomic_init(&t->generation, 1);
    return t;
}

void table_free(struct serve_table *t)
{
    if (!t)
        return;
    snapshot_unref(t->current);
    CHECK(t->live == 0 && list_empty(&t->views));
    mutex_cond_fini(&t->released);
    mutex_fini(&t->lock);
    mem_free(t);
}

/* Replaces an outdated snapshot of the view by the current one. */
static void refresh_slow(struct table_view *view)
{
    struct serve_table *t = view->table;
    mutex_lock(&t->lock);
    struct table_snapshot *old = view->snapshot;
    view->snapshot = t->current;
    atomic_fetch_add_explicit(&view->snapshot->refs, 1, memory_order_relaxed);
    view->generation = atomic_load_explicit(&t->generation, memory_order_relaxed);
    mutex_unlock(&t->lock);
    snapshot_unref(old);
}

static const struct table_snapshot *refresh(struct table_view *view)
{
    if (view->generation != atomic_load_explicit(&view->table->generation, memory_order_acquire))
        refresh_slow(view);
    return view->snapshot;
}

static void refresh_by_mail(struct mail *m)
{
    struct table_view *view = LIST_ITEM(m, struct table_view, mail);
    atomic_store_explicit(&view->told, false, memory_order_release);
    if (view->table)
        refresh(view);
}

void table_view_open(struct table_view *view, struct serve_table *t, struct loop *loop)
{
    *view = (struct table_view){.table = t, .loop = loop, .mail.deliver = refresh_by_mail};
    list_init(&view->node);
    if (loop) {
        mutex_lock(&t->lock);
        list_append(&t->views, &view->node);
        mutex_unlock(&t->lock);
    }
    refresh_slow(view);
}

void table_view_close(struct table_view *view)
{
    mutex_lock(&view->table->lock);
    list_remove(&view->node);
    mutex_unlock(&view->table->lock);
    snapshot_unref(view->snapshot);
    view->snapshot = NULL;
    view->table = NULL;
}

static void publish(struct serve_table *t, struct table_snapshot *fresh)
{
    mutex_lock(&t->lock);
    struct table_snapshot *old = t->current;
    t->current = fresh;
    t->live++;
    atomic_fetch_add_explicit(&t->generation, 1, memory_order_release);
    LIST_EACH (node, &t->views) {
        struct table_view *view = LIST_ITEM(node, struct table_view, node);
        if (!atomic_exchange_explicit(&view->told, true, memory_order_acq_rel))
            loop_post(view->loop, &view->mail, &view->mail);
    }
    mutex_unlock(&t->lock);
    snapshot_unref(old);
}

void table_publish(struct serve_table *t, struct table_model *models, uint32_t count)
{
    publish(t, snapshot_new(t, models, count, NULL, 0));
}

void table_publish_apart(struct serve_table *t, struct table_model *models, uint32_t count,
                         struct table_model *stand_ins, uint32_t stand_in_count)
{
    struct table_snapshot *s = snapshot_new(t, models, count, stand_ins, stand_in_count);
    s->apart = true;
    link_shared(s);
    publish(t, s);
}

void table_refuse(struct serve_table *t)
{
    atomic_store_explicit(&t->refuses, true, memory_order_relaxed);
}

struct err *table_refuses(const struct serve_table *t)
{
    return atomic_load_explicit(&t->refuses, memory_order_relaxed)
               ? err_new(STATUS_UNAVAILABLE, "Server not ready")
               : NULL;
}

void table_settle(struct serve_table *t)
{
    mutex_lock(&t->lock);
    while (t->live > 1)
        mutex_cond_wait(&t->released, &t->lock);
    mutex_unlock(&t->lock);
}

const struct table_model *table_model(struct table_view *view, const char *name, size_t name_len)
{
    return map_get(&refresh(view)->by_name, name, name_len);
}

const struct table_model *table_models(struct table_view *view, uint32_t *ret_count)
{
    const struct table_snapshot *s = refresh(view);
    *ret_count = s->count;
    return s->models;
}

/* The error for a name that means none of the models, or several. */
static struct err *no_meaning(bool apart, const struct table_model *m, const char *name, int len)
{
    if (!m)
        return err_new(apart ? STATUS_INVALID_ARG : STATUS_NOT_FOUND,
                       "Request for unknown model: '%.*s' is not found", len, name);
    if (!m->meanings)
        return err_new(STATUS_NOT_FOUND, "Identifier of model '%.*s' is not found in global map",
                       len, name);
    return err_new(STATUS_INVALID_ARG,
                   "There are %" PRIu32 " identifiers of model '%.*s' in global map, model "
                   "namespace must be provided to resolve ambiguity.",
                   m->meanings, len, name);
}

/* True if the model was never loaded. An entry with number 0 only carries the reason why the
 * model could not be read, or that it has no versions. */
static bool never_loaded(const struct table_model *m)
{
    return !m->versionless && (m->entry_count == 0 || m->entries[m->entry_count - 1].number == 0);
}

static struct err *not_at_ready_state(const struct table_entry *entry, const char *title)
{
    struct err *e =
        err_new(STATUS_UNAVAILABLE,
                "Request for unknown model: '%s' version %" PRId64 " is not at ready state", title,
                entry->number);
    return entry->state == TABLE_LOADING ? err_retry_after(e, ERR_RETRY_LATER) : e;
}

static __attribute__((cold)) struct err *table_not_found(const struct table_view *view,
                                                         const struct table_model *m,
                                                         const char *name, size_t name_len,
                                                         int64_t number)
{
    struct err *refused = table_refuses(view->table);
    if (refused)
        return refused;
    if (!m || m->stand_in)
        return no_meaning(view->snapshot->apart, m, name, (int)name_len);
    const char *title = table_title(m);
    if (never_loaded(m))
        return err_new(STATUS_NOT_FOUND, "Request for unknown model: '%s' is not found", title);
    if (number == -1)
        return err_new(STATUS_NOT_FOUND,
                       "Request for unknown model: '%s' has no available versions", title);
    for (uint32_t i = 0; i < m->entry_count; i++)
        if (m->entries[i].number == number)
            return not_at_ready_state(&m->entries[i], title);
    return err_new(STATUS_NOT_FOUND,
                   "Request for unknown model: '%s' version %" PRId64 " is not found", title,
                   number);
}

/* The version of a model that serves; NULL if it does not serve. */
static struct serve_version *version_of_model(const struct table_model *m, int64_t number)
{
    struct serve_version *v = NULL;
    if (m && number == -1 && m->latest < m->entry_count)
        v = m->entries[m->latest].version;
    for (uint32_t i = 0; m && number != -1 && i < m->entry_count; i++)
        if (m->entries[i].number == number)
            v = m->entries[i].version;
    return v;
}

struct err *table_find(struct table_view *view, const char *name, size_t name_len, int64_t number,
                       struct serve_version **ret)
{
    const struct table_model *m = table_model(view, name, name_len);
    struct serve_version *v = version_of_model(m, number);
    if (!v)
        return table_not_found(view, m, name, name_len, number);
    version_pin(v);
    *ret = v;
    return NULL;
}

struct err *table_find_in(struct table_view *view, const char *space, const char *name,
                          int64_t number, struct serve_version **ret)
{
    const struct table_model *m = table_model(view, name, strlen(name));
    while (m && (m->stand_in || strcmp(space_of(m), space) != 0))
        m = m->namesake;
    struct serve_version *v = version_of_model(m, number);
    if (!v)
        return table_not_found(view, m, name, strlen(name), number);
    version_pin(v);
    *ret = v;
    return NULL;
}
