#include "repo/operate.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "metrics/recent.h"
#include "model/config.h"
#include "model/config_unused.h"
#include "model/version_policy.h"
#include "proto/model_config.pb-c.h"
#include "repo/agents.h"
#include "repo/archive.h"
#include "repo/follow.h"
#include "repo/jobs.h"
#include "repo/models.h"
#include "repo/override.h"
#include "repo/places.h"
#include "repo/plan.h"
#include "repo/repo_priv.h"
#include "repo/resize.h"
#include "repo/retire.h"
#include "repo/source.h"
#include "repo/spaces.h"
#include "serve/version.h"

#include <inttypes.h>
#include <string.h>

/* The most entries of versions that no longer serve; a model keeps them to show what became of
 * the versions. */
#define MAX_OLD_ENTRIES 64u

/* How often a model is read again because it changed while it was read. */
#define MAX_CHANGES 4u

/* One version that is being loaded. */
struct fresh {
    enum plan_action action;
    struct serve_version *version; /* NULL: the old version is kept, or loading failed */
    struct instances_draft *draft; /* the new instances of a serving version */
    struct instances left;         /* the instances that the serving version then no longer needs */
    char *reason;                  /* why it failed */
    bool told;                     /* the log says that it is being loaded */
    bool fetched;                  /* its files were fetched */
};

struct operate_attempt {
    struct repo *r;
    struct repo_model *m;
    const struct repo_job *job;
    struct source *source;
    bool changed;  /* the model changed in its store while it was read */
    uint64_t from; /* the repository's bit; 0 for the directory of an override */
    struct Inference__ModelConfig *proto;
    bool forced;
    bool unchanged;          /* it serves as it is, and agents need not look at it again */
    struct source_look seen; /* the source before anything of it was read */
    uint64_t stamp;          /* seen.beside, or of all files if agents look at the model */
    struct plan_want *want;  /* ascending */
    struct fresh *fresh;     /* one per item of `want` */
    size_t count;
    int64_t sample; /* the first wanted version, else any version; 0 = none */
    bool begun;     /* its versions are being made */
};

/* Publishes changes. Lock held. */
static void operate_show(struct operate_attempt *a)
{
    if (a->job->first)
        models_publish_soon(a->r);
    else
        models_publish(a->r);
}

/* Finds the model's directory. Exactly one of the allowed repositories must have it. */
static struct err *find_directory(struct operate_attempt *a)
{
    uint64_t places;
    struct err *e = places_find(a->r, a->m->name, spaces_places(a->r, a->m->space), a->job->places,
                                a->job->first, &places, &a->from, &a->source, &a->changed);
    mutex_lock(&a->r->lock);
    a->m->places = places;
    mutex_unlock(&a->r->lock);
    return e;
}

/* A number that depends on which versions exist, not on their order. */
static uint64_t mark_of(const struct source_look *seen)
{
    uint64_t mark = seen->version_count;
    for (size_t i = 0; i < seen->version_count; i++)
        mark += ((uint64_t)seen->versions[i] + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return mark;
}

/* True if versions serve and all of them still have the files that they were loaded from. The
 * retirer may change other entries now. A serving version is recognized by its `version`
 * pointer, which only this loader sets. */
static bool files_are_the_same(const struct operate_attempt *a)
{
    bool serves = false;
    for (size_t i = 0; i < a->m->version_count; i++) {
        const struct repo_version *v = &a->m->versions[i];
        uint64_t stamp = 0;
        if (!v->version)
            continue;
        serves = true;
        struct err *e = source_stamp(a->source, v->number, &stamp);
        bool same = !e && stamp == v->stamp;
        err_free(e);
        if (!same)
            return false;
    }
    return serves;
}

/* True if a client's earlier configuration stays in use. As in the reference, a load without a
 * configuration keeps it until something in the model's directory changes. */
static bool keeps_given(const struct operate_attempt *a)
{
    const struct repo_model *m = a->m;
    return a->job->action == REPO_LOAD && !a->job->what.param_count && m->forced && m->proto &&
           a->from == m->from && a->stamp == m->stamp && a->seen.config == m->config_stamp &&
           mark_of(&a->seen) == m->mark && files_are_the_same(a);
}

static struct err *operate_read_config(struct operate_attempt *a)
{
    const struct repo_load *what = &a->job->what;
    const struct repo_param *config = override_config(what->params, what->param_count);
    struct err *e;
    if (a->job->action == REPO_RECHECK)
        a->proto = dependencies_config(a->r, a->m, &a->forced);
    if (!a->proto && keeps_given(a)) {
        LOG_INFO("'%s' keeps the configuration that it was loaded with: its directory is the same; "
                 "unload it to go back to the files",
                 a->m->title);
        a->proto = config_copy_proto(a->m->proto);
        a->forced = true;
    }
    if (a->proto)
        return NULL;
    if (config)
        e = err_wrap(config_parse_json(config->data, config->len, &a->proto),
                     "Invalid config override");
    else
        e = load_read_config(&a->r->settings.context, a->source->dir, &a->proto);
    if (e)
        return e;
    a->forced = config != NULL;
    if (what->archive && *a->proto->name)
        a->proto->name[0] = '\0'; /* the name of the model counts */
    if (*a->proto->name && strcmp(a->proto->name, a->m->name) != 0)
        return err_new(STATUS_INVALID_ARG,
                       "unexpected directory name '%s' for model '%s', directory name must equal "
                       "model name",
                       a->m->name, a->proto->name);
    return NULL;
}

/* Lets the repository agents look at the model; they may put it elsewhere. They are not asked if
 * the model already serves unchanged. */
static struct err *ask_agents(struct operate_attempt *a)
{
    if (!agents_wanted(a->proto))
        return NULL;
    struct err *e = agents_stamp(a->source, &a->seen, &a->stamp);
    if (e)
        return e;
    mutex_lock(&a->r->lock);
    const struct repo_model *m = a->m;
    a->unchanged =
        models_serves(m) && !a->forced && !m->forced && a->stamp == m->stamp && a->from == m->from;
    mutex_unlock(&a->r->lock);
    if (a->unchanged)
        return NULL;
    return agents_take(a->r->agents, a->proto, a->r->settings.context.config_name, &a->source);
}

/* Finds the versions that the version policy picks from the directories of the source, or of the
 * place where agents put the model. */
static struct err *operate_find_versions(struct operate_attempt *a)
{
    struct source_look moved = {0};
    struct source_look *in = a->source->agents ? &moved : &a->seen;
    struct err *e = a->source->agents ? source_look(a->source, &moved) : NULL;
    if (e)
        return e;
    a->sample = in->version_count ? in->versions[0] : 0;
    int64_t missing;
    version_policy_pick(a->proto->version_policy, in->versions, in->version_count, &a->count,
                        &missing);
    if (missing != -1)
        LOG_WARN("model '%s': its version policy asks for version %" PRId64
                 ", which is not in the repository",
                 a->m->title, missing);
    a->want = mem_zalloc((a->count + 1) * sizeof(*a->want));
    for (size_t i = 0; i < a->count; i++)
        a->want[i] = (struct plan_want){.number = in->versions[i], .stamp = a->stamp};
    if (a->count)
        a->sample = a->want[0].number;
    source_look_fini(&moved);
    return NULL;
}

/* Checks the configuration before the first version is begun. If a serving model in a store may
 * have the same files, its files are not fetched only for this check. */
static struct err *operate_check_config(struct operate_attempt *a)
{
    if (a->sample && load_needs_files(a->proto)) {
        mutex_lock(&a->r->lock);
        bool may_be_kept = a->source->copy && models_serves(a->m);
        mutex_unlock(&a->r->lock);
        if (may_be_kept)
            return NULL;
        struct err *e = source_fetch(a->source, a->sample);
        if (e)
            return e;
        a->fresh[0].fetched = a->count > 0;
    }
    return load_check_config(&a->r->settings.context, a->m->name, a->source->dir, a->sample,
                             a->proto);
}

/* Finds the directory, the configuration and the versions. The stamp of each version is taken
 * before its files are read. */
static struct err *look(struct operate_attempt *a)
{
    const struct repo_load *what = &a->job->what;
    struct err *e =
        override_write(what->params, what->param_count, a->r->settings.library_upload, &a->source);
    if (!e && what->archive)
        e = archive_find(a->r, a->m, what, &a->source);
    if (!e && !a->source)
        e = find_directory(a);
    if (!e)
        e = source_look(a->source, &a->seen);
    a->stamp = a->seen.beside;
    if (!e)
        e = operate_read_config(a);
    if (!e)
        e = ask_agents(a);
    if (!e && !a->unchanged)
        e = operate_find_versions(a);
    if (!e)
        a->fresh = mem_zalloc((a->count + 1) * sizeof(*a->fresh));
    for (size_t i = 0; !e && !a->source->agents && i < a->count; i++)
        e = source_stamp(a->source, a->want[i].number, &a->want[i].stamp);
    if (!e && !a->unchanged)
        e = operate_check_config(a);
    return e;
}

static struct operate_attempt *attempt_new(struct repo *r, struct repo_model *m)
{
    struct operate_attempt *a = MEM_NEW(struct operate_attempt);
    a->r = r;
    a->m = m;
    return a;
}

void operate_forget(struct operate_attempt *a)
{
    if (!a)
        return;
    for (size_t i = 0; a->fresh && i < a->count; i++)
        mem_free(a->fresh[i].reason);
    mem_free(a->fresh);
    mem_free(a->want);
    source_look_fini(&a->seen);
    config_free_proto(a->proto);
    source_unref(a->source);
    mem_free(a);
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

static bool operate_is_over(const struct repo_version *v)
{
    return models_is_out(v) && !v->unloading;
}

/* Shows that the model could not even be looked at. The entry is for the whole model, and is not
 * made if the model still serves. If an ensemble does not come back with its models, its
 * versions' entries already say enough. Lock held. */
static void show_failure(struct operate_attempt *a, const struct err *e)
{
    bool versions = false;
    for (size_t i = 0; i < a->m->version_count; i++)
        versions = versions || !is_whole_model(&a->m->versions[i]);
    if (!a->m->places || models_serves(a->m) || (versions && a->job->action == REPO_RECHECK))
        return;
    a->m->wanted = true;
    models_say(models_entry(a->m, 0), TABLE_UNAVAILABLE, err_message(e));
    operate_show(a);
}

/* What changed outside the version directories since they were loaded. Lock held. */
static enum plan_change change_of(const struct operate_attempt *a)
{
    const struct repo_model *m = a->m;
    if (a->stamp != m->stamp || a->from != m->from || !m->proto)
        return PLAN_ANY;
    bool same = !a->forced && !m->forced && a->seen.config == m->config_stamp;
    if (same && !m->dependencies.now.count)
        return PLAN_SAME;
    if (m->dependencies.now.count && dependencies_relabelled(a->r, m))
        return PLAN_ANY;
    /* The models that an ensemble needs may have changed. */
    enum plan_change change = plan_compare(m->proto, a->proto, m->name);
    /* Even if only the text differs, these models are made again, as in the reference. */
    bool whole = a->source->agents || m->dependencies.now.count;
    return change == PLAN_SAME && whole && !same ? PLAN_ANY : change;
}

/* Decides what to do for each version, and shows the versions that are being loaded. */
static void operate_begin(struct operate_attempt *a)
{
    struct repo_model *m = a->m;
    mutex_lock(&a->r->lock);
    struct plan_have *have = mem_alloc((m->version_count + 1) * sizeof(*have));
    size_t have_count = 0;
    for (size_t i = 0; i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY)
            have[have_count++] = (struct plan_have){m->versions[i].number, m->versions[i].stamp};
    enum plan_change change = change_of(a);
    a->begun = true;
    m->wanted = true;
    m->versionless = false;
    drop_entries(m, is_whole_model);
    for (size_t i = 0; i < a->count; i++) {
        a->fresh[i].action = plan_version(have, have_count, &a->want[i], change);
        if (a->fresh[i].action == PLAN_LOAD)
            models_say(models_entry(m, a->want[i].number), TABLE_LOADING, NULL);
    }
    mem_free(have);
    operate_show(a);
    mutex_unlock(&a->r->lock);
}

static struct serve_version *serving(const struct repo_model *m, int64_t number)
{
    for (size_t i = 0; i < m->version_count; i++)
        if (m->versions[i].number == number)
            return m->versions[i].version;
    return NULL;
}

/* Where the files came from before repository agents moved them. */
static enum load_code_from where_from(const struct operate_attempt *a)
{
    const struct source *s = a->source;
    while (s->under)
        s = s->under;
    if (s->copy)
        return LOAD_CODE_STORE;
    return s->temporary && !a->r->settings.library_upload ? LOAD_CODE_REQUEST : LOAD_CODE_DISK;
}

/* Makes what one version needs: the version itself, or more instances.
 * wait  false: if another thread is loading its backend, nothing is made */
static struct err *make_one(struct operate_attempt *a, size_t i, bool wait)
{
    int64_t number = a->want[i].number;
    struct fresh *f = &a->fresh[i];
    if (f->action == PLAN_RESIZE)
        return resize_prepare(serving(a->m, number), a->proto, &f->draft);
    struct load_context c = a->r->settings.context;
    c.is_ours = a->source->temporary;
    c.from = where_from(a);
    struct err *e = f->fetched ? NULL : source_fetch(a->source, number);
    f->fetched = !e;
    if (!e)
        e = load_version(&c, a->m->name, a->source->dir, number, a->proto, wait, &f->version);
    if (!e && f->version)
        dependencies_labels(a->r, a->m, f->version);
    return e;
}

/* What an author may wait for in vain is said when the model is loaded. */
static void tell_unused(const struct operate_attempt *a)
{
    struct strbuf names = STRBUF_INIT;
    config_unused(a->proto, &names);
    if (*strbuf_str(&names))
        LOG_INFO("%s: settings without effect here: %s", a->m->title, strbuf_str(&names));
    strbuf_fini(&names);
}

/* Keeps a failure for people. Clients choose the names that no repository has, so those share the
 * place of models that are not there. */
static void operate_keep_failure(const struct operate_attempt *a, int64_t version, const char *text)
{
    struct recent *recent = a->r->settings.recent;
    mutex_lock(&a->r->lock);
    bool there = a->m->places != 0;
    mutex_unlock(&a->r->lock);
    if (there) {
        recent_load(recent, a->m->title, version, text);
        return;
    }
    struct strbuf named = STRBUF_INIT;
    strbuf_printf(&named, "model '%s': %s", a->m->title, text);
    recent_load(recent, "", version, strbuf_str(&named));
    strbuf_fini(&named);
}

/* Loads one version. Returns false if other models should go first. */
static bool operate_load_one(struct operate_attempt *a, size_t i, bool wait)
{
    int64_t number = a->want[i].number;
    struct fresh *f = &a->fresh[i];
    bool resize = f->action == PLAN_RESIZE;
    if (!f->told) {
        LOG_INFO("%s: %s:%" PRId64, resize ? "changing instances" : "loading", a->m->title, number);
        if (!resize)
            tell_unused(a);
    }
    f->told = true;
    for (uint32_t tries = 0;; tries++) {
        struct err *e = make_one(a, i, wait);
        if (!e && !f->version && !f->draft)
            return false;
        if (!e)
            return true;
        struct strbuf reason = STRBUF_INIT;
        strbuf_printf(&reason, "%s: %s", status_text(err_code(e)), err_message(e));
        LOG_ERROR("failed to load '%s' version %" PRId64 ": %s", a->m->title, number,
                  strbuf_str(&reason));
        operate_keep_failure(a, number, strbuf_str(&reason));
        if (tries >= a->r->settings.retries) {
            f->reason = strbuf_take(&reason);
            err_free(e);
            return true;
        }
        strbuf_fini(&reason);
        err_free(e);
    }
}

/* Removes old entries that only show what became of a version, lowest numbers first. Lock held. */
static void forget_some(struct repo_model *m)
{
    size_t old = 0;
    for (size_t i = m->version_count; i-- > 0;)
        if (operate_is_over(&m->versions[i]) && ++old > MAX_OLD_ENTRIES)
            models_drop_entry(m, &m->versions[i]);
}

static void tell_loaded(const struct operate_attempt *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->fresh[i].action != PLAN_KEEP)
            LOG_INFO("successfully %s '%s' version %" PRId64,
                     a->fresh[i].action == PLAN_RESIZE ? "changed the instances of" : "loaded",
                     a->m->title, a->want[i].number);
}

/* Publishes the new versions and retires those that they replace. */
static void commit(struct operate_attempt *a)
{
    struct repo_model *m = a->m;
    tell_loaded(a); /* all of them: nothing can fail any more; and before what they replace goes */
    for (size_t i = 0; i < a->count; i++)
        if (a->fresh[i].action == PLAN_RESIZE)
            instances_commit(a->fresh[i].draft, &a->fresh[i].left);
    mutex_lock(&a->r->lock);
    for (size_t i = 0; i < m->version_count; i++) {
        struct repo_version *v = &m->versions[i];
        if (v->state == TABLE_READY && plan_drops(a->want, a->count, v->number))
            retire_version(a->r, m, v, true);
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->fresh[i].action == PLAN_RESIZE)
            retire_instances(a->r, m, serving(m, a->want[i].number), &a->fresh[i].left);
        if (a->fresh[i].action == PLAN_KEEP || a->fresh[i].action == PLAN_RESIZE)
            continue;
        struct repo_version *v = models_entry(m, a->want[i].number);
        if (v->version)
            retire_version(a->r, m, v, false);
        models_say(v, TABLE_READY, NULL);
        v->version = a->fresh[i].version;
        version_continue(v->version, retire_tally(a->r, m, v->number));
        v->source = source_ref(a->source);
        a->source->serving++;
        v->stamp = a->want[i].stamp;
    }
    m->forced = a->forced;
    m->stamp = a->stamp;
    m->config_stamp = a->seen.config;
    m->mark = mark_of(&a->seen);
    config_free_proto(m->proto);
    m->proto = a->proto;
    a->proto = NULL;
    m->from = a->from;
    forget_some(m);
    operate_show(a);
    bool parting = m->parting;
    mutex_unlock(&a->r->lock);
    agents_loaded(a->source->agents);
    if (!parting)
        return;
    jobs_lend(a->r, true); /* other models load meanwhile */
    retire_wait_instances(a->r, m);
    jobs_lend(a->r, false);
}

/* The load failed: frees what was made. The versions that served before still serve. */
static struct err *roll_back(struct operate_attempt *a)
{
    struct strbuf why = STRBUF_INIT;
    for (size_t i = 0; i < a->count; i++) {
        version_free(a->fresh[i].version);
        instances_abandon(a->fresh[i].draft);
        if (a->fresh[i].reason)
            strbuf_printf(&why, "version %" PRId64 " is at UNAVAILABLE state: %s;",
                          a->want[i].number, a->fresh[i].reason);
    }
    agents_failed(a->source->agents);
    mutex_lock(&a->r->lock);
    for (size_t i = 0; i < a->count; i++)
        if (a->fresh[i].action == PLAN_LOAD)
            models_say(models_entry(a->m, a->want[i].number),
                       a->fresh[i].reason ? TABLE_UNAVAILABLE : TABLE_UNLOADED, a->fresh[i].reason);
    forget_some(a->m);
    operate_show(a);
    mutex_unlock(&a->r->lock);
    struct err *e = err_new(STATUS_INVALID_ARG, "load failed for model '%s': %s\n", a->m->title,
                            strbuf_str(&why));
    strbuf_fini(&why);
    return e;
}

/* The model was looked at, but cannot be served. Takes the reason over. */
static struct err *cannot_serve(struct operate_attempt *a, struct err *why)
{
    LOG_ERROR("failed to load '%s' from '%s': %s", a->m->title, a->source->dir, err_message(why));
    operate_keep_failure(a, 0, err_message(why));
    mutex_lock(&a->r->lock);
    show_failure(a, why);
    mutex_unlock(&a->r->lock);
    struct err *e = err_new(STATUS_INVALID_ARG, "load failed for model '%s': %s\n", a->m->title,
                            err_message(why));
    err_free(why);
    return e;
}

static struct err *no_versions(struct operate_attempt *a)
{
    mutex_lock(&a->r->lock);
    a->m->versionless = true;
    mutex_unlock(&a->r->lock);
    return cannot_serve(
        a, err_new(STATUS_INVALID_ARG,
                   "at least one version must be available under the version policy of model '%s'",
                   a->m->title));
}

/* The model could not be looked at. If the client sent something unusable, the error says so;
 * otherwise it says that the repository cannot be read. */
static struct err *cannot_look(struct operate_attempt *a, struct err *e)
{
    LOG_ERROR("failed to load '%s': %s", a->m->title, err_message(e));
    operate_keep_failure(a, 0, err_message(e));
    mutex_lock(&a->r->lock);
    a->m->versionless = false;
    show_failure(a, e);
    mutex_unlock(&a->r->lock);
    bool ours = !a->job->what.param_count && !a->job->what.archive;
    return err_wrap(ours || err_code(e) == STATUS_NOT_FOUND ? err_recode(e, STATUS_INTERNAL) : e,
                    "failed to load '%s', failed to poll from model repository", a->m->name);
}

/* The model could be read. An ensemble first waits for the models that it needs, and is then
 * checked against them. Returns true if the job was put back. */
static bool look_at_needs(struct operate_attempt *a, struct repo_job *waiting, struct err **ret)
{
    mutex_lock(&a->r->lock);
    spaces_mean(a->r, a->m);
    mutex_unlock(&a->r->lock);
    dependencies_note(a->r, a->m, a->proto, a->forced);
    if (follow_wait(a->r, a->m, waiting))
        return true;
    *ret = dependencies_check(a->r, a->m, a->proto);
    if (!*ret && a->job->what.archive)
        *ret = archive_check(a->r, &a->job->what, a->proto);
    return false;
}

/* Does everything before versions are made. Returns true if the job was put back. */
static bool prepare(struct operate_attempt *a, struct repo_job *waiting, struct err **ret)
{
    struct repo_model *m = a->m;
    struct err *e = look(a);
    struct err *unfit = NULL;
    if (!e && look_at_needs(a, waiting, &unfit))
        return true;
    bool missing = e && !a->source && err_code(e) == STATUS_NOT_FOUND;
    if (missing && a->job->if_there)
        LOG_VERBOSE(1, "there is no model '%s'", m->title);
    else if (e)
        e = cannot_look(a, e);
    else if (unfit)
        e = cannot_serve(a, unfit);
    else if (a->unchanged)
        LOG_VERBOSE(1, "model '%s' serves as it is", m->title);
    else if (!a->count)
        e = no_versions(a);
    else
        operate_begin(a);
    *ret = e;
    return false;
}

/* Makes all versions. During the start, a model whose backend is being loaded by another thread
 * lets other models go first. Returns true if the job was put back with its attempt. */
static bool make_all(struct operate_attempt *a, struct repo_job *waiting, struct err **ret)
{
    bool failed = false;
    for (size_t i = 0; i < a->count && !failed; i++) {
        if (a->fresh[i].action == PLAN_KEEP)
            continue;
        if (!operate_load_one(a, i, i > 0 || !a->job->first)) {
            waiting->attempt = a;
            if (jobs_put_back(a->r, a->m, waiting))
                return true;
            waiting->attempt = NULL;
            operate_load_one(a, i, true);
        }
        failed = a->fresh[i].reason != NULL;
    }
    if (failed)
        *ret = roll_back(a);
    else
        commit(a);
    return false;
}

static struct err *operate_load_model(struct repo *r, struct repo_model *m,
                                      const struct repo_job *job, struct repo_job *waiting,
                                      bool *ret_changed, bool *ret_parked)
{
    struct operate_attempt *a = waiting->attempt ? waiting->attempt : attempt_new(r, m);
    struct err *e = NULL;
    waiting->attempt = NULL;
    a->job = job;
    *ret_parked = !a->begun && prepare(a, waiting, &e);
    if (*ret_parked) {
        operate_forget(a);
        return NULL;
    }
    *ret_parked = a->begun && make_all(a, waiting, &e);
    if (*ret_parked)
        return NULL;
    dependencies_settle(r, m, e != NULL);
    *ret_changed = a->changed || source_changed(a->source);
    operate_forget(a);
    return e;
}

/* Loads a model. If it changes in its store while it is read, it is read again. */
struct err *operate_load(struct repo *r, struct repo_model *m, struct repo_job *job,
                         bool *ret_parked)
{
    struct repo_job mine = *job; /* the earlier listing of the store is trusted only once */
    for (unsigned tries = 1;; tries++) {
        bool changed;
        struct err *e = operate_load_model(r, m, &mine, job, &changed, ret_parked);
        if (*ret_parked || !e || !changed || tries == MAX_CHANGES)
            return e;
        LOG_INFO("model '%s' changed while it was read: it is read again", m->title);
        err_free(e);
        mine.first = false;
    }
}

/* Takes out all versions. Lock held. See operate_unload. */
static void operate_take_out(struct repo *r, struct repo_model *m, const char *why)
{
    drop_entries(m, is_whole_model);
    for (size_t i = 0; i < m->version_count; i++) {
        struct repo_version *v = &m->versions[i];
        bool serves = v->state == TABLE_READY;
        if (serves)
            retire_version(r, m, v, true);
        else if (v->state == TABLE_UNAVAILABLE)
            models_say(v, TABLE_UNLOADED, NULL);
        if (serves && why)
            models_say(v, v->state, why);
    }
    m->meant = m->meant && why;
    m->wanted = false;
    m->forced = false;
    m->from = 0;
}

void operate_unload_all(struct repo *r)
{
    mutex_lock(&r->lock);
    for (size_t i = 0; i < r->model_count; i++)
        operate_take_out(r, r->models[i], NULL);
    models_publish(r);
    mutex_unlock(&r->lock);
}

struct err *operate_unload(struct repo *r, struct repo_model *m, uint64_t places, const char *why)
{
    mutex_lock(&r->lock);
    if (models_serves(m) && places != UINT64_MAX && !(m->from & places)) {
        mutex_unlock(&r->lock);
        return err_new(STATUS_NOT_FOUND, "model '%s' was not loaded from this repository", m->name);
    }
    operate_take_out(r, m, why);
    models_publish(r);
    mutex_unlock(&r->lock);
    return NULL;
}
