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
    struct map by_name; /* -> table_model */
    struct table_model *models;
    uint32_t count;
};

struct serve_table {
    struct mutex lock; /* rank SNAPSHOT; guards current, live, views */
    struct mutex_cond released;
    struct table_snapshot *current;
    unsigned live;                /* snapshots not freed yet */
    _Atomic(uint64_t) generation; /* of current; released by table_publish, acquired by views */
    struct list views;
};

const char *table_state_name(enum table_state s)
{
    static const char *const names[] = {"UNKNOWN", "READY", "UNAVAILABLE", "LOADING", "UNLOADING"};
    return (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : names[0];
}

static int by_model_name(const void *a, const void *b)
{
    return strcmp(((const struct table_model *)a)->name, ((const struct table_model *)b)->name);
}

static struct table_snapshot *snapshot_new(struct serve_table *t, struct table_model *models,
                                           uint32_t count)
{
    struct table_snapshot *s = MEM_NEW(struct table_snapshot);
    atomic_init(&s->refs, 1);
    s->table = t;
    s->models = models;
    s->count = count;
    if (count)
        qsort(models, count, sizeof(*models), by_model_name);
    for (uint32_t i = 0; i < count; i++)
        map_put(&s->by_name, models[i].name, strlen(models[i].name), &models[i]);
    return s;
}

static void snapshot_unref(struct table_snapshot *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct serve_table *t = s->table;
    map_fini(&s->by_name);
    for (uint32_t i = 0; i < s->count; i++) {
        for (uint32_t k = 0; k < s->models[i].entry_count; k++)
            mem_free((char *)(uintptr_t)s->models[i].entries[k].reason);
        mem_free(s->models[i].entries);
        mem_free((char *)(uintptr_t)s->models[i].name);
    }
    mem_free(s->models);
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
    t->current = snapshot_new(t, NULL, 0);
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

/* Exchanges an outdated snapshot for the current one. */
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

void table_publish(struct serve_table *t, struct table_model *models, uint32_t count)
{
    struct table_snapshot *fresh = snapshot_new(t, models, count);
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

static __attribute__((cold)) struct err *not_found(const struct table_model *m, const char *name,
                                                   size_t name_len, int64_t number)
{
    int len = (int)name_len;
    if (!m || (number == -1 && m->entry_count == 0))
        return err_new(STATUS_NOT_FOUND, "Request for unknown model: '%.*s' is not found", len,
                       name);
    if (number == -1)
        return err_new(STATUS_NOT_FOUND,
                       "Request for unknown model: '%.*s' has no available versions", len, name);
    for (uint32_t i = 0; i < m->entry_count; i++)
        if (m->entries[i].number == number)
            return err_new(STATUS_UNAVAILABLE,
                           "Request for unknown model: '%.*s' version %" PRId64
                           " is not at ready state",
                           len, name, number);
    return err_new(STATUS_NOT_FOUND,
                   "Request for unknown model: '%.*s' version %" PRId64 " is not found", len, name,
                   number);
}

struct err *table_find(struct table_view *view, const char *name, size_t name_len, int64_t number,
                       struct serve_version **ret)
{
    const struct table_model *m = table_model(view, name, name_len);
    struct serve_version *v = NULL;
    if (m && number == -1 && m->latest < m->entry_count)
        v = m->entries[m->latest].version;
    for (uint32_t i = 0; m && number != -1 && i < m->entry_count; i++)
        if (m->entries[i].number == number)
            v = m->entries[i].version;
    if (!v)
        return not_found(m, name, name_len, number);
    version_pin(v);
    *ret = v;
    return NULL;
}
