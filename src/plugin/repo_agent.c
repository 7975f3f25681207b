#include "plugin/repo_agent.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "os/dl.h"
#include "os/files/file.h"
#include "os/files/tree.h"
#include "plugin/alone.h"

#include <string.h>

#define AGENT_MAGIC 0x5241474eu
#define MODEL_MAGIC 0x52414d44u

static TRITONREPOAGENT_Agent *repo_agent_handle(struct repo_agent *a)
{
    return (TRITONREPOAGENT_Agent *)a;
}

static TRITONREPOAGENT_AgentModel *model_handle(struct repo_agent_model *m)
{
    return (TRITONREPOAGENT_AgentModel *)m;
}

struct repo_agent *repo_agent_of(void *handle)
{
    struct repo_agent *a = handle;
    return a && a->magic == AGENT_MAGIC ? a : NULL;
}

struct repo_agent_model *repo_agent_model_of(void *handle)
{
    struct repo_agent_model *m = handle;
    return m && m->magic == MODEL_MAGIC ? m : NULL;
}

static struct err *repo_agent_open_library(struct repo_agent *a)
{
    dl_make_self_global((const void *)(uintptr_t)repo_agent_open_library);
    struct err *e = dl_open(a->path, &a->dl);
    if (!e)
        e = alone_check("repository agent", a->name);
    if (e)
        return e;
    TRITONSERVER_Error *(*initialize)(TRITONREPOAGENT_Agent *);
    *(void **)&initialize = dl_symbol(a->dl, "TRITONREPOAGENT_Initialize");
    *(void **)&a->finalize = dl_symbol(a->dl, "TRITONREPOAGENT_Finalize");
    *(void **)&a->model_initialize = dl_symbol(a->dl, "TRITONREPOAGENT_ModelInitialize");
    *(void **)&a->model_finalize = dl_symbol(a->dl, "TRITONREPOAGENT_ModelFinalize");
    *(void **)&a->model_action = dl_symbol(a->dl, "TRITONREPOAGENT_ModelAction");
    if (!a->model_action)
        return err_new(STATUS_NOT_FOUND,
                       "unable to find required entrypoint 'TRITONREPOAGENT_ModelAction' in shared "
                       "library '%s'",
                       a->path);
    a->initialized = true;
    return initialize ? (struct err *)initialize(repo_agent_handle(a)) : NULL;
}

struct err *repo_agent_find(const char *directory, const char *name, char **ret)
{
    if (!*name || strchr(name, '/') || name[0] == '.')
        return err_new(STATUS_INVALID_ARG, "invalid repository agent name '%s'", name);
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%s/libtritonrepoagent_%s.so", directory, name, name);
    bool there = file_exists(strbuf_str(&path));
    if (there && ret)
        *ret = strbuf_take(&path);
    strbuf_fini(&path);
    return there ? NULL
                 : err_new(STATUS_INVALID_ARG,
                           "repository agent '%s': unable to find 'libtritonrepoagent_%s.so' for "
                           "repo agent '%s', searched: %s",
                           name, name, name, directory);
}

struct err *repo_agent_load(const char *directory, const char *name, struct repo_agent **ret)
{
    char *path;
    struct err *e = repo_agent_find(directory, name, &path);
    if (e)
        return e;
    struct repo_agent *a = MEM_NEW(struct repo_agent);
    a->magic = AGENT_MAGIC;
    a->name = mem_strdup(name);
    a->path = path;
    e = repo_agent_open_library(a);
    if (e) {
        repo_agent_free(a);
        return err_wrap(e, "repository agent '%s'", name);
    }
    *ret = a;
    return NULL;
}

static void repo_agent_log_failure(struct err *e, const struct repo_agent *a, const char *what)
{
    if (e)
        LOG_ERROR("repository agent '%s': %s: %s", a->name, what, err_message(e));
    err_free(e);
}

void repo_agent_free(struct repo_agent *a)
{
    if (!a)
        return;
    if (a->initialized && a->finalize)
        repo_agent_log_failure((struct err *)a->finalize(repo_agent_handle(a)), a, "finalizing");
    a->magic = 0;
    mem_free(a->name);
    mem_free(a->path);
    mem_free(a);
}

struct err *repo_agent_model_new(struct repo_agent *a, const char *location,
                                 TRITONREPOAGENT_ArtifactType type,
                                 const struct Inference__ModelConfig *config,
                                 const struct repo_agent_param *params, size_t count,
                                 struct repo_agent_model **ret)
{
    struct repo_agent_model *m = MEM_NEW(struct repo_agent_model);
    m->magic = MODEL_MAGIC;
    m->agent = a;
    m->location = mem_strdup(location);
    m->location_type = type;
    m->config = config ? config_copy_proto(config) : NULL;
    m->params = mem_alloc((count + 1) * sizeof(*m->params));
    m->param_count = count;
    for (size_t i = 0; i < count; i++)
        m->params[i] = (struct repo_agent_param){.name = mem_strdup(params[i].name),
                                                 .value = mem_strdup(params[i].value)};
    m->initialized = true;
    struct err *e = a->model_initialize
                        ? (struct err *)a->model_initialize(repo_agent_handle(a), model_handle(m))
                        : NULL;
    if (e) {
        repo_agent_model_free(m);
        return err_wrap(e, "repository agent '%s'", a->name);
    }
    *ret = m;
    return NULL;
}

const char *repo_agent_action_name(TRITONREPOAGENT_ActionType action)
{
    switch (action) {
    case TRITONREPOAGENT_ACTION_LOAD:
        return "TRITONREPOAGENT_ACTION_LOAD";
    case TRITONREPOAGENT_ACTION_LOAD_COMPLETE:
        return "TRITONREPOAGENT_ACTION_LOAD_COMPLETE";
    case TRITONREPOAGENT_ACTION_LOAD_FAIL:
        return "TRITONREPOAGENT_ACTION_LOAD_FAIL";
    case TRITONREPOAGENT_ACTION_UNLOAD:
        return "TRITONREPOAGENT_ACTION_UNLOAD";
    case TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE:
        return "TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE";
    }
    return "Unknown TRITONREPOAGENT_ActionType";
}

/* True if the action is allowed now. Allowed orders: LOAD, LOAD_COMPLETE, UNLOAD,
 * UNLOAD_COMPLETE; or LOAD, LOAD_FAIL. */
static bool may_follow(const struct repo_agent_model *m, TRITONREPOAGENT_ActionType action)
{
    switch (action) {
    case TRITONREPOAGENT_ACTION_LOAD:
        return !m->begun;
    case TRITONREPOAGENT_ACTION_LOAD_COMPLETE:
    case TRITONREPOAGENT_ACTION_LOAD_FAIL:
        return m->begun && m->action == TRITONREPOAGENT_ACTION_LOAD;
    case TRITONREPOAGENT_ACTION_UNLOAD:
        return m->begun && m->action == TRITONREPOAGENT_ACTION_LOAD_COMPLETE;
    case TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE:
        return m->begun && m->action == TRITONREPOAGENT_ACTION_UNLOAD;
    }
    return false;
}

struct err *repo_agent_model_act(struct repo_agent_model *m, TRITONREPOAGENT_ActionType action)
{
    if (!may_follow(m, action))
        return err_new(STATUS_INTERNAL, "Unexpected lifecycle state transition from %s to %s",
                       m->begun ? repo_agent_action_name(m->action) : "the beginning",
                       repo_agent_action_name(action));
    m->begun = true;
    m->action = action;
    struct err *e =
        (struct err *)m->agent->model_action(repo_agent_handle(m->agent), model_handle(m), action);
    return err_wrap(e, "repository agent '%s'", m->agent->name);
}

void repo_agent_model_free(struct repo_agent_model *m)
{
    if (!m)
        return;
    struct repo_agent *a = m->agent;
    if (m->initialized && a->model_finalize)
        repo_agent_log_failure(
            (struct err *)a->model_finalize(repo_agent_handle(a), model_handle(m)), a,
            "finalizing a model");
    if (m->acquired)
        err_free(repo_agent_model_give_up(m));
    for (size_t i = 0; i < m->param_count; i++) {
        mem_free((char *)(uintptr_t)m->params[i].name);
        mem_free((char *)(uintptr_t)m->params[i].value);
    }
    mem_free(m->params);
    config_free_proto(m->config);
    mem_free(m->location);
    m->magic = 0;
    mem_free(m);
}

struct err *repo_agent_model_acquire(struct repo_agent_model *m, TRITONREPOAGENT_ArtifactType type,
                                     const char **ret)
{
    if (type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM)
        return err_new(STATUS_INVALID_ARG,
                       "Unexpected artifact type, expects 'TRITONREPOAGENT_ARTIFACT_FILESYSTEM'");
    if (!m->acquired) {
        struct err *e = tree_make(TREE_AGENT, &m->acquired);
        if (e)
            return e;
    }
    *ret = m->acquired;
    return NULL;
}

struct err *repo_agent_model_give_up(struct repo_agent_model *m)
{
    if (!m->acquired)
        return err_new(STATUS_UNAVAILABLE, "No mutable location to be deleted");
    tree_remove(m->acquired);
    mem_free(m->acquired);
    m->acquired = NULL;
    return NULL;
}

struct err *repo_agent_model_move(struct repo_agent_model *m, TRITONREPOAGENT_ArtifactType type,
                                  const char *location)
{
    if (!m->begun || m->action != TRITONREPOAGENT_ACTION_LOAD)
        return err_new(STATUS_INVALID_ARG,
                       "location can only be updated during TRITONREPOAGENT_ACTION_LOAD, current "
                       "action type is %s",
                       m->begun ? repo_agent_action_name(m->action) : "not set");
    char *copy = mem_strdup(location);
    mem_free(m->location);
    m->location = copy;
    m->location_type = type;
    return NULL;
}
