#include "repo/models.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "repo/repo_priv.h"
#include "repo/source.h"
#include "repo/spaces.h"
#include "serve/features.h"

#include <string.h>

struct repo_name *models_name(const struct repo *r, const char *name)
{
    return map_get(&r->by_name, name, strlen(name));
}

struct repo_model *models_find(const struct repo *r, const char *space, const char *name)
{
    const struct repo_name *n = models_name(r, name);
    struct repo_model *m = n ? n->first : NULL;
    while (m && strcmp(m->space, space) != 0)
        m = m->namesake;
    return m;
}

static char *title_of(const char *space, const char *name)
{
    struct strbuf title = STRBUF_INIT;
    strbuf_printf(&title, "%s%s%s", space, *space ? "::" : "", name);
    return strbuf_take(&title);
}

/* Adds a model to the list of its name. */
static void link_model(struct repo *r, struct repo_model *m)
{
    struct repo_name *n = models_name(r, m->name);
    if (!n) {
        n = MEM_NEW(struct repo_name);
        n->name = mem_strdup(m->name);
        list_init(&n->node);
        map_put(&r->by_name, m->name, strlen(m->name), n);
    }
    if (!list_empty(&n->node)) {
        list_remove(&n->node);
        r->spent_count--;
    }
    m->namesake = n->first;
    n->first = m;
}

static void free_name(struct repo_name *n)
{
    mem_free(n->name);
    mem_free(n);
}

static void forget_name(struct repo *r, struct repo_name *n)
{
    map_remove(&r->by_name, n->name, strlen(n->name));
    free_name(n);
}

/* Keeps a name without models, so that a client hears that a model with this name existed. The
 * oldest names are forgotten. */
static void keep_name(struct repo *r, struct repo_name *n)
{
    list_append(&r->spent, &n->node);
    if (++r->spent_count <= REPO_MAX_SPENT)
        return;
    r->spent_count--;
    forget_name(r, LIST_ITEM(list_pop(&r->spent), struct repo_name, node));
}

static void unlink_model(struct repo *r, struct repo_model *m)
{
    struct repo_name *n = models_name(r, m->name);
    struct repo_model **at = &n->first;
    while (*at != m)
        at = &(*at)->namesake;
    *at = m->namesake;
    if (n->first)
        return;
    if (n->used && r->settings.namespacing)
        keep_name(r, n);
    else
        forget_name(r, n);
}

struct repo_model *models_of(struct repo *r, const char *space, const char *name)
{
    struct repo_model *m = models_find(r, space, name);
    if (m)
        return m;
    m = MEM_NEW(struct repo_model);
    m->space = space;
    m->name = mem_strdup(name);
    m->title = title_of(space, name);
    list_init(&m->jobs);
    list_init(&m->node);
    r->models = mem_realloc(r->models, (r->model_count + 1) * sizeof(struct repo_model *));
    r->models[r->model_count++] = m;
    link_model(r, m);
    return m;
}

static void models_free_model(struct repo_model *m)
{
    while (m->version_count)
        models_drop_entry(m, &m->versions[m->version_count - 1]);
    config_free_proto(m->proto);
    dependencies_fini(&m->dependencies);
    mem_free(m->versions);
    mem_free(m->name);
    mem_free(m->title);
    mem_free(m);
}

void models_free(struct repo *r)
{
    for (size_t i = 0; i < r->model_count; i++)
        models_free_model(r->models[i]);
    mem_free(r->models);
    size_t pos = 0;
    void *name;
    while (map_next(&r->by_name, &pos, NULL, &name))
        free_name(name);
    map_fini(&r->by_name);
}

/* True if the model must be kept. Entries of unloaded versions do not keep it. */
static bool needed(const struct repo_model *m)
{
    if (m->places || m->busy || m->retiring || !list_empty(&m->jobs))
        return true;
    for (size_t i = 0; i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY || m->versions[i].state == TABLE_LOADING)
            return true;
    return false;
}

void models_let_go(struct repo *r, const struct repo_model *m)
{
    if (!needed(m))
        models_prune(r);
}

void models_prune(struct repo *r)
{
    if (r->stopping)
        return;
    size_t kept = 0;
    bool shown = false;
    for (size_t i = 0; i < r->model_count; i++) {
        struct repo_model *m = r->models[i];
        if (needed(m)) {
            r->models[kept++] = m;
            continue;
        }
        shown = shown || m->version_count;
        unlink_model(r, m);
        models_free_model(m);
    }
    r->model_count = kept;
    if (shown)
        models_publish(r);
}

struct repo_version *models_entry(struct repo_model *m, int64_t number)
{
    size_t at = 0;
    while (at < m->version_count && m->versions[at].number < number)
        at++;
    if (at < m->version_count && m->versions[at].number == number)
        return &m->versions[at];
    m->versions = mem_realloc(m->versions, (m->version_count + 1) * sizeof(*m->versions));
    memmove(&m->versions[at + 1], &m->versions[at], (m->version_count - at) * sizeof(*m->versions));
    m->version_count++;
    m->versions[at] = (struct repo_version){.number = number};
    return &m->versions[at];
}

bool models_serves(const struct repo_model *m)
{
    for (size_t i = 0; i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY)
            return true;
    return false;
}

void models_drop_entry(struct repo_model *m, const struct repo_version *v)
{
    size_t at = (size_t)(v - m->versions);
    mem_free(v->reason);
    source_unref(v->source);
    m->version_count--;
    memmove(&m->versions[at], &m->versions[at + 1], (m->version_count - at) * sizeof(*m->versions));
}

void models_say(struct repo_version *v, enum table_state state, const char *reason)
{
    v->state = state;
    mem_free(v->reason);
    v->reason = reason && *reason ? mem_strdup(reason) : NULL;
}

const char *models_reason(const struct repo_version *v)
{
    return v->reason ? v->reason : v->state == TABLE_UNLOADED ? "unloaded" : NULL;
}

bool models_is_out(const struct repo_version *v)
{
    return v->state == TABLE_UNAVAILABLE || v->state == TABLE_UNLOADED;
}

static void show_versions(const struct repo_model *m, struct table_model *t)
{
    t->entries = mem_zalloc((m->version_count + 1) * sizeof(*t->entries));
    t->entry_count = t->latest = (uint32_t)m->version_count;
    for (size_t i = 0; i < m->version_count; i++) {
        const struct repo_version *v = &m->versions[i];
        const char *reason = models_reason(v);
        t->entries[i] =
            (struct table_entry){.number = v->number,
                                 .state = v->state,
                                 .reason = mem_strdup(reason ? reason : ""),
                                 .version = v->state == TABLE_READY ? v->version : NULL};
        if (v->state == TABLE_READY)
            t->latest = (uint32_t)i;
    }
    if (m->version_count || !(m->places & (m->places - 1)))
        return;
    t->entries[0] = (struct table_entry){
        .state = TABLE_UNAVAILABLE,
        .reason = mem_strdup("model appears in two or more repositories"),
    };
    t->entry_count = t->latest = 1;
}

/* Sets the fields that tell models of one name apart. */
static void show_space(const struct repo *r, const struct repo_model *m, struct table_model *t)
{
    uint32_t ignored;
    t->space = *m->space ? m->space : NULL;
    t->title = mem_strdup(m->title);
    t->shared = spaces_find(r, m->name, &ignored) != m;
}

/* Makes entries for the names that mean none of their models, or several. A name that never
 * meant a model gets none. */
static struct table_model *show_names(const struct repo *r, uint32_t *ret_count)
{
    struct table_model *names = mem_zalloc((r->by_name.count + 1) * sizeof(*names));
    size_t pos = 0;
    const char *name;
    void *value;
    *ret_count = 0;
    while (map_next(&r->by_name, &pos, &name, &value)) {
        uint32_t meanings;
        if (!((const struct repo_name *)value)->used || spaces_find(r, name, &meanings))
            continue;
        names[(*ret_count)++] =
            (struct table_model){.name = mem_strdup(name), .stand_in = true, .meanings = meanings};
    }
    return names;
}

void models_publish(struct repo *r)
{
    mutex_assert_held(&r->lock);
    struct table_model *models = mem_zalloc((r->model_count + 1) * sizeof(*models));
    bool apart = r->settings.namespacing;
    uint32_t count = 0;
    for (size_t i = 0; i < r->model_count; i++) {
        const struct repo_model *m = r->models[i];
        if (!m->places && !m->version_count)
            continue; /* a client only asked for it; it does not exist */
        struct table_model *t = &models[count++];
        t->name = mem_strdup(m->name);
        t->places = m->places | m->from;
        t->wanted = m->wanted;
        t->versionless = m->versionless;
        show_versions(m, t);
        if (apart)
            show_space(r, m, t);
    }
    uint32_t name_count = 0;
    struct table_model *names = apart ? show_names(r, &name_count) : NULL;
    if (apart)
        table_publish_apart(r->table, models, count, names, name_count);
    else
        table_publish(r->table, models, count);
    features_changed(r->settings.context.features);
    r->unpublished = false;
}

void models_publish_soon(struct repo *r)
{
    if (r->starting)
        r->unpublished = true;
    else
        models_publish(r);
}

void models_publish_rest(struct repo *r)
{
    if (r->unpublished)
        models_publish(r);
}
