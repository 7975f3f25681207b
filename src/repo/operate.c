#include "repo/operate.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/version_policy.h"
#include "os/file.h"
#include "os/stamp.h"
#include "proto/model_config.pb-c.h"
#include "repo/models.h"
#include "repo/override.h"
#include "repo/plan.h"
#include "repo/repo_priv.h"
#include "repo/retire.h"
#include "repo/source.h"
#include "serve/version.h"
#include "store/local.h"

#include <inttypes.h>
#include <string.h>

/* Entries of versions that serve no longer which a model keeps, to tell what became of them. */
#define MAX_OLD_ENTRIES 64u

/* One version on its way. */
struct fresh {
    enum plan_action action;
    struct serve_version *version; /* NULL: kept, or failed */
    char *reason;                  /* why it failed */
};

/* One load of one model. */
struct attempt {
    struct repo *r;
    struct repo_model *m;
    const struct repo_job *job;
    struct source *source;
    uint64_t from; /* the repository's bit; 0 for an override's own directory */
    struct Inference__ModelConfig *proto;
    bool forced;
    uint64_t stamp;
    struct plan_want *want; /* ascending */
    struct fresh *fresh;    /* one for each of them */
    size_t count;
};

/* Shows what changed, when no version was taken out. Lock held. */
static void show(struct attempt *a)
{
    if (a->job->first)
        models_publish_soon(a->r);
    else
        models_publish(a->r);
}

static bool is_version(const char *name)
{
    int64_t ignored;
    return version_policy_parse_dir(name, &ignored);
}

/* The directory of the model: exactly one of the repositories that may be used has it. */
static struct err *find_directory(struct attempt *a)
{
    const struct repo_settings *s = &a->r->settings;
    uint64_t found = 0;
    for (size_t i = 0; i < s->path_count && a->m->name[0] != '.'; i++) {
        char *dir = file_join(s->paths[i], a->m->name);
        if (file_is_dir(dir))
            found |= UINT64_C(1) << i;
        mem_free(dir);
    }
    mutex_lock(&a->r->lock);
    a->m->places = found;
    mutex_unlock(&a->r->lock);
    found &= a->job->places;
    if (!found)
        return err_new(STATUS_NOT_FOUND, "no repository has a directory of this name");
    if (found & (found - 1))
        return err_new(STATUS_INVALID_ARG, "model appears in two or more repositories");
    a->from = found;
    a->source = source_new(file_join(s->paths[__builtin_ctzll(found)], a->m->name), false);
    return NULL;
}

static struct err *read_config(struct attempt *a)
{
    const struct repo_load *what = &a->job->what;
    const struct repo_param *config = override_config(what->params, what->param_count);
    struct err *e;
    if (config)
        e = err_wrap(config_parse_json(config->data, config->len, &a->proto),
                     "Invalid config override");
    else
        e = load_read_config(&a->r->settings.context, a->source->dir, &a->proto);
    if (e)
        return e;
    a->forced = config != NULL;
    if (*a->proto->name && strcmp(a->proto->name, a->m->name) != 0)
        return err_new(STATUS_INVALID_ARG,
                       "unexpected directory name '%s' for model '%s', directory name must equal "
                       "model name",
                       a->m->name, a->proto->name);
    return NULL;
}

/* What the version policy picks among the directories. */
static struct err *find_versions(struct attempt *a, int64_t **ret, size_t *ret_count)
{
    struct local_names dirs;
    struct err *e = local_directories(a->source->dir, &dirs);
    if (e)
        return e;
    int64_t *numbers = mem_alloc((dirs.count + 1) * sizeof(*numbers));
    size_t found = 0;
    for (size_t i = 0; i < dirs.count; i++)
        if (version_policy_parse_dir(dirs.names[i], &numbers[found]))
            found++;
    local_names_fini(&dirs);
    int64_t missing;
    version_policy_pick(a->proto->version_policy, numbers, found, ret_count, &missing);
    if (missing != -1)
        LOG_WARN("model '%s': its version policy asks for version %" PRId64
                 ", which is not in the repository",
                 a->m->name, missing);
    *ret = numbers;
    return NULL;
}

/* Where, what, and which versions, each with a stamp taken before its files are read. */
static struct err *look(struct attempt *a)
{
    const struct repo_load *what = &a->job->what;
    struct err *e = override_write(what->params, what->param_count, &a->source);
    if (!e && !a->source)
        e = find_directory(a);
    if (!e)
        e = stamp_directory(a->source->dir, is_version, &a->stamp);
    if (!e)
        e = read_config(a);
    int64_t *numbers = NULL;
    if (!e)
        e = find_versions(a, &numbers, &a->count);
    if (!e) {
        a->want = mem_zalloc((a->count + 1) * sizeof(*a->want));
        a->fresh = mem_zalloc((a->count + 1) * sizeof(*a->fresh));
    }
    for (size_t i = 0; !e && i < a->count; i++) {
        struct strbuf dir = STRBUF_INIT;
        strbuf_printf(&dir, "%s/%" PRId64, a->source->dir, numbers[i]);
        a->want[i].number = numbers[i];
        e = stamp_directory(strbuf_str(&dir), NULL, &a->want[i].stamp);
        strbuf_fini(&dir);
    }
    mem_free(numbers);
    return e;
}

static void attempt_fini(struct attempt *a)
{
    for (size_t i = 0; a->fresh && i < a->count; i++)
        mem_free(a->fresh[i].reason);
    mem_free(a->fresh);
    mem_free(a->want);
    config_free_proto(a->proto);
    source_unref(a->source);
}

static void drop_entries(struct repo_model *m, bool (*which)(const struct repo_version *v))
{
    for (size_t i = m->version_count; i-- > 0;)
        if (which(&m->versions[i]))
            models_drop_entry(m, &m->versions[i]);
}

static bool is_whole_model(const struct repo_version *v)
{
    return v->number == 0;
}

static bool is_over(const struct repo_version *v)
{
    return v->state == TABLE_UNAVAILABLE && !v->unloading;
}

/* It could not even be looked at: said of the model as a whole, unless it serves on. Lock held. */
static void show_failure(struct attempt *a, const struct err *e)
{
    bool serves = false;
    for (size_t i = 0; i < a->m->version_count; i++)
        serves = serves || a->m->versions[i].state == TABLE_READY;
    if (!a->m->places || serves)
        return;
    a->m->wanted = true;
    drop_entries(a->m, is_over);
    models_say(models_entry(a->m, 0), TABLE_UNAVAILABLE, err_message(e));
    show(a);
}

/* Decides for each version, and shows those that are on their way. */
static void begin(struct attempt *a)
{
    struct repo_model *m = a->m;
    mutex_lock(&a->r->lock);
    struct plan_have *have = mem_alloc((m->version_count + 1) * sizeof(*have));
    size_t have_count = 0;
    for (size_t i = 0; i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY)
            have[have_count++] = (struct plan_have){m->versions[i].number, m->versions[i].stamp};
    bool again = a->forced || m->forced || a->stamp != m->stamp || a->from != m->from;
    m->wanted = true;
    drop_entries(m, is_whole_model);
    for (size_t i = 0; i < a->count; i++) {
        a->fresh[i].action = plan_version(have, have_count, &a->want[i], again);
        if (a->fresh[i].action == PLAN_LOAD)
            models_say(models_entry(m, a->want[i].number), TABLE_LOADING, NULL);
    }
    mem_free(have);
    show(a);
    mutex_unlock(&a->r->lock);
}

static void load_one(struct attempt *a, size_t i)
{
    int64_t number = a->want[i].number;
    LOG_INFO("loading: %s:%" PRId64, a->m->name, number);
    for (uint32_t tries = 0;; tries++) {
        struct err *e = load_version(&a->r->settings.context, a->m->name, a->source->dir, number,
                                     a->proto, &a->fresh[i].version);
        if (!e) {
            LOG_INFO("successfully loaded '%s' version %" PRId64, a->m->name, number);
            return;
        }
        LOG_ERROR("failed to load '%s' version %" PRId64 ": %s: %s", a->m->name, number,
                  status_text(err_code(e)), err_message(e));
        if (tries >= a->r->settings.retries) {
            struct strbuf reason = STRBUF_INIT;
            strbuf_printf(&reason, "%s: %s", status_text(err_code(e)), err_message(e));
            a->fresh[i].reason = strbuf_take(&reason);
            err_free(e);
            return;
        }
        err_free(e);
    }
}

/* Old entries that only tell what became of a version, the lowest numbers first. Lock held. */
static void forget_some(struct repo_model *m)
{
    size_t old = 0;
    for (size_t i = m->version_count; i-- > 0;)
        if (is_over(&m->versions[i]) && ++old > MAX_OLD_ENTRIES)
            models_drop_entry(m, &m->versions[i]);
}

/* The new set serves; what it replaces goes. */
static void commit(struct attempt *a)
{
    struct repo_model *m = a->m;
    bool taken_out = false;
    mutex_lock(&a->r->lock);
    for (size_t i = 0; i < m->version_count; i++) {
        struct repo_version *v = &m->versions[i];
        if (v->state != TABLE_READY || !plan_drops(a->want, a->count, v->number))
            continue;
        retire_version(a->r, m, v, true);
        taken_out = true;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->fresh[i].action == PLAN_KEEP)
            continue;
        struct repo_version *v = models_entry(m, a->want[i].number);
        if (v->version) {
            retire_version(a->r, m, v, false);
            taken_out = true;
        }
        models_say(v, TABLE_READY, NULL);
        v->version = a->fresh[i].version;
        v->source = source_ref(a->source);
        v->stamp = a->want[i].stamp;
    }
    m->forced = a->forced;
    m->stamp = a->stamp;
    m->from = a->from;
    forget_some(m);
    if (taken_out)
        models_publish(a->r);
    else
        show(a);
    mutex_unlock(&a->r->lock);
}

/* What was made is given up; what served before still does. */
static struct err *roll_back(struct attempt *a)
{
    struct strbuf why = STRBUF_INIT;
    for (size_t i = 0; i < a->count; i++) {
        version_free(a->fresh[i].version);
        if (a->fresh[i].reason)
            strbuf_printf(&why, "version %" PRId64 " is at UNAVAILABLE state: %s;",
                          a->want[i].number, a->fresh[i].reason);
    }
    mutex_lock(&a->r->lock);
    for (size_t i = 0; i < a->count; i++)
        if (a->fresh[i].action == PLAN_LOAD)
            models_say(models_entry(a->m, a->want[i].number), TABLE_UNAVAILABLE,
                       a->fresh[i].reason ? a->fresh[i].reason : "unloaded");
    forget_some(a->m);
    show(a);
    mutex_unlock(&a->r->lock);
    struct err *e = err_new(STATUS_INVALID_ARG, "load failed for model '%s': %s\n", a->m->name,
                            strbuf_str(&why));
    strbuf_fini(&why);
    return e;
}

static struct err *no_versions(struct attempt *a)
{
    struct err *why =
        err_new(STATUS_INVALID_ARG,
                "at least one version must be available under the version policy of model '%s'",
                a->m->name);
    LOG_ERROR("failed to load '%s' from '%s': %s", a->m->name, a->source->dir, err_message(why));
    mutex_lock(&a->r->lock);
    show_failure(a, why);
    mutex_unlock(&a->r->lock);
    struct err *e = err_new(STATUS_INVALID_ARG, "load failed for model '%s': %s\n", a->m->name,
                            err_message(why));
    err_free(why);
    return e;
}

/* Whoever sent something that cannot be used is told so; else it is the repository that cannot be read. */
static struct err *cannot_look(struct attempt *a, struct err *e)
{
    LOG_ERROR("failed to load '%s': %s", a->m->name, err_message(e));
    mutex_lock(&a->r->lock);
    show_failure(a, e);
    mutex_unlock(&a->r->lock);
    bool ours = !a->job->what.param_count;
    return err_wrap(ours || err_code(e) == STATUS_NOT_FOUND ? err_recode(e, STATUS_INTERNAL) : e,
                    "failed to load '%s', failed to poll from model repository", a->m->name);
}

struct err *operate_load(struct repo *r, struct repo_model *m, const struct repo_job *job)
{
    struct attempt a = {.r = r, .m = m, .job = job};
    struct err *e = look(&a);
    bool failed = false;
    if (e) {
        e = cannot_look(&a, e);
    } else if (!a.count) {
        e = no_versions(&a);
    } else {
        begin(&a);
        for (size_t i = 0; i < a.count && !failed; i++) {
            if (a.fresh[i].action != PLAN_KEEP)
                load_one(&a, i);
            failed = a.fresh[i].reason != NULL;
        }
        if (failed)
            e = roll_back(&a);
        else
            commit(&a);
    }
    attempt_fini(&a);
    return e;
}

struct err *operate_unload(struct repo *r, struct repo_model *m, uint64_t places)
{
    mutex_lock(&r->lock);
    bool serves = false;
    for (size_t i = 0; i < m->version_count; i++)
        serves = serves || m->versions[i].state == TABLE_READY;
    if (serves && places != UINT64_MAX && !(m->from & places)) {
        mutex_unlock(&r->lock);
        return err_new(STATUS_NOT_FOUND, "model '%s' was not loaded from this repository", m->name);
    }
    drop_entries(m, is_whole_model);
    for (size_t i = 0; i < m->version_count; i++) {
        struct repo_version *v = &m->versions[i];
        if (v->state == TABLE_READY)
            retire_version(r, m, v, true);
        else if (v->state == TABLE_UNAVAILABLE)
            models_say(v, TABLE_UNAVAILABLE, "unloaded");
    }
    m->wanted = false;
    m->forced = false;
    m->from = 0;
    models_publish(r);
    mutex_unlock(&r->lock);
    return NULL;
}
