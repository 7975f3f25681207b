/* The part of check_priv.h about ensembles. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_steps.h"
#include "proto/model_config.pb-c.h"
#include "repo/check_priv.h"

#include <string.h>

/* Steps within steps that are followed. */
#define MAX_DEPTH 100u

/* The way from an ensemble to a step, for messages. */
struct way {
    const struct way *before;
    const char *model;
};

static const Inference__ModelConfig *find(const struct check *c, const char *name)
{
    return map_get(&c->models, name, strlen(name));
}

static void put_way(const struct way *w, struct strbuf *sb)
{
    if (w->before) {
        put_way(w->before, sb);
        strbuf_puts(sb, " -> ");
    }
    strbuf_puts(sb, w->model);
}

static void tell(struct check *c, const char *model, const struct strbuf *what, const char *mend)
{
    struct strbuf place = STRBUF_INIT;
    strbuf_printf(&place, "%s/config.pbtxt", model);
    check_add(c, model, strbuf_str(&place), strbuf_str(what), mend);
    strbuf_fini(&place);
}

/* Whether the way goes on to its beginning; then that was told. What was seen on another way need not be looked at again. */
static bool tell_circle(struct check *c, const char *first, const struct way *at, struct map *seen,
                        unsigned depth)
{
    const Inference__ModelConfig *p = find(c, at->model);
    if (!p || !p->ensemble_scheduling || depth > MAX_DEPTH)
        return false;
    for (size_t i = 0; i < p->ensemble_scheduling->n_step; i++) {
        struct way next = {at, p->ensemble_scheduling->step[i]->model_name};
        if (strcmp(next.model, first) == 0) {
            struct strbuf what = STRBUF_INIT;
            strbuf_puts(&what, "circular dependency between ensembles: ");
            put_way(&next, &what);
            tell(c, first, &what, "take one of the steps out");
            strbuf_fini(&what);
            return true;
        }
        if (!map_put(seen, next.model, strlen(next.model), seen) &&
            tell_circle(c, first, &next, seen, depth + 1))
            return true;
    }
    return false;
}

static const Inference__ModelConfig *find_step(void *owner, const char *model)
{
    return find(owner, model);
}

/* Whether all that the steps take and give stands in the files; what a backend fills in is not known. */
static bool is_written(const struct check *c, const Inference__ModelConfig *p)
{
    for (size_t i = 0; i < p->ensemble_scheduling->n_step; i++) {
        const Inference__ModelConfig *step = find(c, p->ensemble_scheduling->step[i]->model_name);
        if (!step || !step->n_input || !step->n_output)
            return false;
    }
    return true;
}

static void tell_unfit(struct check *c, const char *name, const Inference__ModelConfig *p)
{
    Inference__ModelConfig *whole = config_copy_proto(p);
    bool ignored;
    config_fill_defaults(whole, name);
    struct err *broken = config_check_model(whole, name, CONFIG_CHECK_FULL); /* told elsewhere */
    struct err *e = broken ? NULL : config_steps_check(whole, find_step, c, &ignored);
    if (e) {
        struct strbuf what = STRBUF_INIT;
        strbuf_puts(&what, err_message(e));
        tell(c, name, &what, "make names, data types and shapes of the steps fit each other");
        strbuf_fini(&what);
    }
    err_free(e);
    err_free(broken);
    config_free_proto(whole);
}

void check_ensembles(struct check *c)
{
    size_t pos = 0;
    const char *name;
    void *value;
    while (map_next(&c->models, &pos, &name, &value)) {
        const Inference__ModelConfig *p = value;
        for (size_t i = 0; p->ensemble_scheduling && i < p->ensemble_scheduling->n_step; i++) {
            const char *step = p->ensemble_scheduling->step[i]->model_name;
            if (find(c, step))
                continue;
            struct strbuf what = STRBUF_INIT;
            strbuf_printf(&what,
                          "ensemble_scheduling: step %zu needs model '%s', which no "
                          "repository has",
                          i + 1, step);
            tell(c, name, &what, "add the model, or take the step out");
            strbuf_fini(&what);
        }
        struct map seen = {0};
        bool circle = tell_circle(c, name, &(struct way){NULL, name}, &seen, 0);
        map_fini(&seen);
        if (p->ensemble_scheduling && !circle && is_written(c, p))
            tell_unfit(c, name, p);
    }
}
