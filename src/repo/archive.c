#include "repo/archive.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/config_platform.h"
#include "os/files/file.h"
#include "proto/model_config.pb-c.h"
#include "repo/models.h"
#include "repo/repo_priv.h"
#include "repo/source.h"
#include "repo/spaces.h"
#include "repo/load/local.h"

#include <string.h>

/* True if an absolute path without links lies below a directory. */
static bool lies_below(const char *path, const char *root)
{
    size_t len = strlen(root);
    while (len && root[len - 1] == '/')
        len--;
    return strncmp(path, root, len) == 0 && path[len] == '/' && path[len + 1];
}

/* The absolute path of a directory, which must be below the one for archives. */
static struct err *archive_resolve(const struct repo *r, const char *path, char **ret)
{
    char *root = file_absolute(r->settings.archives);
    char *found = file_absolute(path);
    bool ok = *path == '/' && lies_below(found, root) && file_is_dir(found);
    struct err *e = ok ? NULL
                       : err_new(STATUS_INVALID_ARG,
                                 "failed to register '%s': expected a directory below %s, which "
                                 "--sagemaker-models-directory changes",
                                 path, r->settings.archives);
    mem_free(root);
    if (ok)
        *ret = found;
    else
        mem_free(found);
    return e;
}

static bool has_config(const char *dir)
{
    char *path = file_join(dir, "config.pbtxt");
    bool has = file_exists(path);
    mem_free(path);
    return has;
}

static bool archive_is_ensemble(const struct repo *r, const char *archive, const char *name)
{
    Inference__ModelConfig *proto = NULL;
    char *dir = file_join(archive, name);
    struct err *e = load_read_config(&r->settings.context, dir, &proto);
    bool is = !e && (proto->scheduling_choice_case ==
                         INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING ||
                     strcmp(proto->platform, CONFIG_PLATFORM_ENSEMBLE) == 0);
    err_free(e);
    if (!e)
        config_free_proto(proto);
    mem_free(dir);
    return is;
}

/* The one of several directories that is meant. */
static struct err *archive_choose(const struct repo *r, const char *archive,
                                  const struct local_names *names, const char **ret)
{
    unsigned ensembles = 0;
    *ret = names->count == 1 ? names->names[0] : NULL;
    for (size_t i = 0; names->count > 1 && i < names->count; i++)
        if (archive_is_ensemble(r, archive, names->names[i])) {
            *ret = names->names[i];
            ensembles++;
        }
    if (*ret && ensembles <= 1)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "'%s' has %zu directories of models, and %u of them of ensembles: expected one "
                   "model, or one ensemble with its models",
                   archive, names->count, ensembles);
}

/* The most models of an archive. */
#define ARCHIVE_MODELS 64u

static struct err *archive_model(const struct repo *r, const char *archive, char **ret)
{
    struct local_names names = {0};
    const char *name = NULL;
    if (has_config(archive)) {
        *ret = mem_strdup(archive);
        return NULL;
    }
    struct err *e = local_models(archive, &names);
    if (!e && names.count > ARCHIVE_MODELS)
        e = err_new(STATUS_INVALID_ARG, "'%s' has more than %u directories of models", archive,
                    ARCHIVE_MODELS);
    if (!e)
        e = archive_choose(r, archive, &names, &name);
    if (!e)
        *ret = file_join(archive, name);
    local_names_fini(&names);
    return e;
}

/* True if the model serves, or may be loaded, from elsewhere. Lock held. */
static bool is_elsewhere(const struct repo *r, const struct repo_model *m, const char *dir)
{
    uint32_t count;
    const struct repo_model *meant = spaces_find(r, m->name, &count);
    if (m->places || (count && meant != m))
        return true;
    for (size_t i = 0; i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY && strcmp(m->versions[i].source->dir, dir) != 0)
            return true;
    return false;
}

static struct err *archive_refuse(const char *name)
{
    return err_new(STATUS_ALREADY_EXISTS,
                   "failed to load '%s': another model of this server has the name", name);
}

struct err *archive_find(struct repo *r, const struct repo_model *m, const struct repo_load *what,
                         struct source **ret)
{
    char *archive, *dir = NULL, *found;
    struct err *e = archive_resolve(r, what->archive, &archive);
    if (e)
        return e;
    if (what->step)
        dir = file_join(archive, m->name);
    else
        e = archive_model(r, archive, &dir);
    mem_free(archive);
    if (what->step && !file_is_dir(dir)) {
        mem_free(dir);
        return NULL;
    }
    if (!e)
        e = archive_resolve(r, dir, &found);
    mem_free(dir);
    if (e)
        return e;
    mutex_lock(&r->lock);
    bool taken = is_elsewhere(r, m, found);
    mutex_unlock(&r->lock);
    if (taken) {
        mem_free(found);
        return archive_refuse(m->name);
    }
    *ret = source_new(found, false);
    return NULL;
}

struct err *archive_check(struct repo *r, const struct repo_load *what,
                          const struct Inference__ModelConfig *proto)
{
    const Inference__ModelEnsembling *steps = proto->ensemble_scheduling;
    if (proto->scheduling_choice_case !=
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        return NULL;
    for (size_t i = 0; i < steps->n_step; i++) {
        const char *name = steps->step[i]->model_name;
        char *dir = file_join(what->archive, name);
        char *found = file_absolute(dir);
        bool here = file_is_dir(found);
        mutex_lock(&r->lock);
        const struct repo_model *m = models_find(r, "", name);
        bool taken = here && m && is_elsewhere(r, m, found);
        mutex_unlock(&r->lock);
        mem_free(found);
        mem_free(dir);
        if (taken)
            return archive_refuse(name);
    }
    return NULL;
}
