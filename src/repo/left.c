#include "repo/left.h"

#include "base/log.h"
#include "repo/models.h"
#include "repo/repo_priv.h"
#include "serve/version.h"

#include <inttypes.h>
#include <string.h>

/* Ends a line. */
static void end_line(struct repo_left *l)
{
    strbuf_putc(&l->lines, '\0');
}

static void add_busy(struct repo_left *l, const char *title, int64_t number, long pins)
{
    if (pins <= 0)
        return;
    l->count++;
    strbuf_printf(&l->lines, "Model '%s' (version %" PRId64 ") has %ld in-flight inferences", title,
                  number, pins);
    end_line(l);
}

void left_busy(struct repo *r, struct repo_left *ret)
{
    *ret = (struct repo_left){.count = 0};
    mutex_lock(&r->lock);
    for (size_t i = 0; i < r->model_count; i++) {
        const struct repo_model *m = r->models[i];
        for (size_t k = 0; k < m->version_count; k++)
            if (m->versions[k].version)
                add_busy(ret, m->title, m->versions[k].number,
                         version_requests(m->versions[k].version));
    }
    LIST_EACH (node, &r->leaving) {
        const struct repo_retired *old = LIST_ITEM(node, struct repo_retired, all);
        if (old->shown && !old->finishing)
            add_busy(ret, old->model->title, old->number, version_requests(old->version));
    }
    mutex_unlock(&r->lock);
}

/* True if a version of the model serves, is being loaded, or is not freed yet. */
static bool add_live(struct repo_left *l, const struct repo_model *m, bool lines)
{
    bool live = false;
    for (size_t i = 0; i < m->version_count; i++) {
        const struct repo_version *v = &m->versions[i];
        if (v->state == TABLE_UNKNOWN || models_is_out(v))
            continue;
        live = true;
        if (!lines)
            continue;
        strbuf_printf(&l->lines, "%s v%" PRId64 ": %s", m->title, v->number,
                      table_state_name(v->state));
        end_line(l);
    }
    return live;
}

void left_live(struct repo *r, struct repo_left *ret)
{
    bool lines = log_verbose_enabled(1);
    *ret = (struct repo_left){.count = 0};
    mutex_lock(&r->lock);
    for (size_t i = 0; i < r->model_count; i++)
        ret->count += add_live(ret, r->models[i], lines);
    LIST_EACH (node, &r->leaving)
        ret->count += !LIST_ITEM(node, struct repo_retired, all)->shown;
    ret->operations = r->operations;
    LIST_EACH (node, &r->looks)
        ret->operations++;
    mutex_unlock(&r->lock);
}

static void add_at_work(struct strbuf *lines, const struct repo_model *m)
{
    static const char *const doing[] = {
        [REPO_LOAD] = "loaded",
        [REPO_UNLOAD] = "unloaded",
        [REPO_RECHECK] = "compared with the models that it needs",
        [REPO_SYNC] = "waited for",
    };
    if (!m->busy)
        return;
    strbuf_printf(lines, "'%s' is still being %s", m->title, doing[m->doing]);
    if (m->awaits)
        strbuf_printf(lines, ": it waits for model '%s'", m->awaits);
    strbuf_putc(lines, '\0');
}

void left_say_at_work(struct repo *r)
{
    struct strbuf lines = STRBUF_INIT;
    mutex_lock(&r->lock);
    for (size_t i = 0; i < r->model_count; i++)
        add_at_work(&lines, r->models[i]);
    mutex_unlock(&r->lock);
    for (size_t at = 0; at < lines.len; at += strlen(lines.data + at) + 1)
        LOG_ERROR("%s", lines.data + at);
    strbuf_fini(&lines);
}
