/* Checks of ensembles, see check_priv.h. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_steps.h"
#include "proto/model_config.pb-c.h"
#include "repo/check/check_priv.h"

#include <string.h>

/* The deepest nesting of ensembles that is followed. */
#define MAX_DEPTH 100u

/* The path from an ensemble to a step, for messages. */
struct way {
    const struct way *before;
    const struct check_model *model;
};

/* The ensemble whose steps are being looked up. */
struct finder {
    const struct check *check;
    const struct check_model *ensemble;
};

/* The model that a step means: the one in the same space, else the only one of that name; NULL
 * if there is none, or several. */
static const struct check_model *
check_ensembles_find(const struct check *c, const struct check_model *ensemble, const char *name)
{
    const struct check_model *own = NULL;
    const struct check_model *other = NULL;
    size_t others = 0;
    size_t pos = 0;
    void *value;
    if (!c->settings->namespacing)
        return map_get(&c->models, name, strlen(name));
    while (map_next(&c->models, &pos, NULL, &value)) {
        const struct check_model *m = value;
        if (strcmp(m->name, name) != 0)
            continue;
        other = m;
        others++;
        if (strcmp(m->space, ensemble->space) == 0)
            own = m;
    }
    return own || others != 1 ? own : other;
}

static void put_way(const struct way *w, struct strbuf *sb)
{
    if (w->before) {
        put_way(w->before, sb);
        strbuf_puts(sb, " -> ");
    }
    strbuf_puts(sb, w->model->title);
}

static void check_ensembles_tell(struct check *c, const struct check_model *m,
                                 const struct strbuf *what, const char *mend)
{
    check_add(c, m->name, m->config, strbuf_str(what), mend);
}

/* The steps of an ensemble; NULL if the model is not one. The kinds of scheduling share a union
 * in the message, so the kind is checked first. */
static const Inference__ModelEnsembling *steps_of(const Inference__ModelConfig *p)
{
    return p && p->scheduling_choice_case ==
                       INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING
               ? p->ensemble_scheduling
               : NULL;
}

/* Returns true if the path leads back to its first model; that is reported then. Models that
 * were seen on another path are skipped. */
static bool tell_circle(struct check *c, const struct check_model *first, const struct way *at,
                        struct map *seen, unsigned depth)
{
    const Inference__ModelEnsembling *steps = steps_of(at->model->proto);
    if (!steps || depth > MAX_DEPTH)
        return false;
    for (size_t i = 0; i < steps->n_step; i++) {
        struct way next = {at, check_ensembles_find(c, at->model, steps->step[i]->model_name)};
        if (!next.model)
            continue;
        if (next.model == first) {
            struct strbuf what = STRBUF_INIT;
            strbuf_puts(&what, "circular dependency between ensembles: ");
            put_way(&next, &what);
            check_ensembles_tell(c, first, &what, "take one of the steps out");
            strbuf_fini(&what);
            return true;
        }
        if (!map_put(seen, next.model->title, strlen(next.model->title), seen) &&
            tell_circle(c, first, &next, seen, depth + 1))
            return true;
    }
    return false;
}

static const Inference__ModelConfig *find_step(void *owner, const char *model)
{
    const struct finder *f = owner;
    const struct check_model *m = check_ensembles_find(f->check, f->ensemble, model);
    return m ? m->proto : NULL;
}

/* True if the files contain all inputs and outputs of the steps. What a backend would fill in is
 * not known here. */
static bool is_written(const struct check *c, const struct check_model *m)
{
    const Inference__ModelEnsembling *steps = m->proto->ensemble_scheduling;
    for (size_t i = 0; i < steps->n_step; i++) {
        const struct check_model *step = check_ensembles_find(c, m, steps->step[i]->model_name);
        if (!step || !check_files_written(step->proto))
            return false;
    }
    return true;
}

static void tell_unfit(struct check *c, const struct check_model *m)
{
    Inference__ModelConfig *whole = config_copy_proto(m->proto);
    struct finder f = {c, m};
    bool ignored;
    config_fill_defaults(whole, m->name);
    /* reported elsewhere */
    struct err *broken = config_check_model(whole, m->name, CONFIG_CHECK_FULL);
    struct err *e = broken ? NULL : config_steps_check(whole, find_step, &f, &ignored);
    if (e) {
        struct strbuf what = STRBUF_INIT;
        strbuf_puts(&what, err_message(e));
        bool mixed = strstr(err_message(e), config_steps_mixed) != NULL;
        check_ensembles_tell(
            c, m, &what,
            mixed ? "a decoupled model answers any number of times: have it put what is joined "
                    "with its answers into each of them, or take the step out"
                  : "make names, data types and shapes of the steps fit each other");
        strbuf_fini(&what);
    }
    err_free(e);
    err_free(broken);
    config_free_proto(whole);
}

static void tell_missing_steps(struct check *c, const struct check_model *m)
{
    const Inference__ModelEnsembling *steps = steps_of(m->proto);
    for (size_t i = 0; i < steps->n_step; i++) {
        const char *step = steps->step[i]->model_name;
        if (check_ensembles_find(c, m, step))
            continue;
        struct strbuf what = STRBUF_INIT;
        strbuf_printf(&what, "ensemble_scheduling: step %zu needs model '%s', which %s", i + 1,
                      step,
                      c->settings->namespacing ? "is not beside it, and not in one other repository"
                                               : "no repository has");
        check_ensembles_tell(c, m, &what, "add the model, or take the step out");
        strbuf_fini(&what);
    }
}

void check_ensembles_model(struct check *c, const struct check_model *m)
{
    struct map seen = {0};
    if (!steps_of(m->proto))
        return;
    tell_missing_steps(c, m);
    if (!tell_circle(c, m, &(struct way){NULL, m}, &seen, 0) && is_written(c, m))
        tell_unfit(c, m);
    map_fini(&seen);
}
