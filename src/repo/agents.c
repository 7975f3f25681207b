#include "repo/agents.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/config.h"
#include "os/mutex.h"
#include "plugin/repo_agent.h"
#include "proto/model_config.pb-c.h"
#include "repo/source.h"
#include "repo/load/local.h"

#include <string.h>

/* An agent's library. It exists as long as a model uses it. */
struct loaded {
    struct repo_agent *agent; /* NULL while a thread loads or finalizes it */
    unsigned users;
};

struct agents {
    struct mutex lock; /* rank REGISTRY; guards by_name and what it holds */
    struct mutex_cond changed;
    struct map by_name;
    const char *directory;
};

struct agents_set {
    struct agents *owner;
    struct repo_agent_model **models; /* in the order of the configuration */
    size_t count;
    bool complete; /* LOAD_COMPLETE was the last call */
};

struct agents *agents_new(const char *directory)
{
    struct agents *a = MEM_NEW(struct agents);
    mutex_init(&a->lock, MUTEX_RANK_REGISTRY);
    mutex_cond_init(&a->changed);
    a->directory = directory;
    return a;
}

void agents_free(struct agents *a)
{
    if (!a)
        return;
    map_fini(&a->by_name);
    mutex_cond_fini(&a->changed);
    mutex_fini(&a->lock);
    mem_free(a);
}

/* Finds the agent with a name; this thread or another one loads it. Counts a user, see
 * agents_release. */
static struct err *acquire(struct agents *a, const char *name, struct repo_agent **ret)
{
    size_t len = strlen(name);
    mutex_lock(&a->lock);
    struct loaded *l = map_get(&a->by_name, name, len);
    while (l && !l->agent) {
        mutex_cond_wait(&a->changed, &a->lock);
        l = map_get(&a->by_name, name, len);
    }
    if (l) {
        l->users++;
        *ret = l->agent;
        mutex_unlock(&a->lock);
        return NULL;
    }
    l = MEM_NEW(struct loaded);
    map_put(&a->by_name, name, len, l);
    mutex_unlock(&a->lock);

    struct repo_agent *agent = NULL;
    struct err *e = repo_agent_load(a->directory, name, &agent);
    mutex_lock(&a->lock);
    if (e) {
        map_remove(&a->by_name, name, len);
        mem_free(l);
    } else {
        l->agent = agent;
        l->users = 1;
        *ret = agent;
    }
    mutex_cond_broadcast(&a->changed);
    mutex_unlock(&a->lock);
    return e;
}

/* Drops a user. The last user finalizes the agent; a thread that wants it meanwhile waits, then
 * loads it again. */
static void agents_release(struct agents *a, struct repo_agent *agent)
{
    char *name = mem_strdup(agent->name);
    mutex_lock(&a->lock);
    struct loaded *l = map_get(&a->by_name, name, strlen(name));
    bool last = --l->users == 0;
    if (last)
        l->agent = NULL;
    mutex_unlock(&a->lock);
    if (last) {
        repo_agent_free(agent);
        mutex_lock(&a->lock);
        map_remove(&a->by_name, name, strlen(name));
        mem_free(l);
        mutex_cond_broadcast(&a->changed);
        mutex_unlock(&a->lock);
    }
    mem_free(name);
}

void agents_each(struct agents *a, agents_each_fn *fn, void *arg)
{
    size_t pos = 0;
    const char *name;
    void *value;
    mutex_lock(&a->lock);
    while (map_next(&a->by_name, &pos, &name, &value)) {
        const struct loaded *l = value;
        if (l->agent)
            fn(arg, l->agent->name, l->agent->path);
    }
    mutex_unlock(&a->lock);
}

bool agents_wanted(const struct Inference__ModelConfig *proto)
{
    return proto->model_repository_agents && proto->model_repository_agents->n_agents > 0;
}

static void log_refusal(struct err *e, TRITONREPOAGENT_ActionType action)
{
    if (e)
        LOG_ERROR("Agent model returns error on %s: %s", repo_agent_action_name(action),
                  err_message(e));
    err_free(e);
}

/* Makes the calls that are still missing, so that the agent sees the model's whole life. */
static void finish_life(struct repo_agent_model *m)
{
    if (!m->begun)
        return;
    if (m->action == TRITONREPOAGENT_ACTION_LOAD)
        log_refusal(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_LOAD_FAIL),
                    TRITONREPOAGENT_ACTION_LOAD_FAIL);
    if (m->action == TRITONREPOAGENT_ACTION_LOAD_COMPLETE)
        log_refusal(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_UNLOAD),
                    TRITONREPOAGENT_ACTION_UNLOAD);
    if (m->action == TRITONREPOAGENT_ACTION_UNLOAD)
        log_refusal(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE),
                    TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE);
}

void agents_end(struct agents_set *s)
{
    if (!s)
        return;
    for (size_t i = s->count; i-- > 0;)
        finish_life(s->models[i]);
    for (size_t i = 0; i < s->count; i++) {
        struct repo_agent *agent = s->models[i]->agent;
        repo_agent_model_free(s->models[i]);
        agents_release(s->owner, agent);
    }
    mem_free(s->models);
    mem_free(s);
}

/* The configuration in a directory that an agent chose; NULL if none can be read. */
static struct Inference__ModelConfig *config_at(const char *dir, const char *config_name)
{
    char *text = NULL;
    char *path = NULL;
    size_t len;
    struct Inference__ModelConfig *proto = NULL;
    struct err *e = local_read_config(dir, config_name, &text, &len, &path);
    if (!e && text)
        e = config_parse_text(text, len, path, &proto);
    err_free(e);
    mem_free(text);
    mem_free(path);
    return proto;
}

/* Adds an agent, which looks at the model where the agent before it left it. */
static struct err *agents_add(struct agents_set *s,
                              const Inference__ModelRepositoryAgents__Agent *wanted,
                              const char *dir, const struct Inference__ModelConfig *config)
{
    struct repo_agent *agent;
    struct err *e = acquire(s->owner, wanted->name, &agent);
    if (e)
        return e;
    struct repo_agent_param *params = mem_alloc((wanted->n_parameters + 1) * sizeof(*params));
    for (size_t i = 0; i < wanted->n_parameters; i++)
        params[i] =
            (struct repo_agent_param){wanted->parameters[i]->key, wanted->parameters[i]->value};
    struct repo_agent_model *m;
    e = repo_agent_model_new(agent, dir, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, config, params,
                             wanted->n_parameters, &m);
    mem_free(params);
    if (e) {
        agents_release(s->owner, agent);
        return e;
    }
    s->models[s->count++] = m;
    return repo_agent_model_act(m, TRITONREPOAGENT_ACTION_LOAD);
}

struct err *agents_take(struct agents *a, const struct Inference__ModelConfig *proto,
                        const char *config_name, struct source **source)
{
    const Inference__ModelRepositoryAgents *wanted = proto->model_repository_agents;
    struct agents_set *s = MEM_NEW(struct agents_set);
    s->owner = a;
    s->models = mem_zalloc(wanted->n_agents * sizeof(struct repo_agent_model *));
    const char *dir = (*source)->dir;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < wanted->n_agents; i++) {
        struct Inference__ModelConfig *there = i ? config_at(dir, config_name) : NULL;
        e = agents_add(s, wanted->agents[i], dir, i ? there : proto);
        config_free_proto(there);
        if (!e && s->models[i]->location_type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM)
            e = err_new(STATUS_UNSUPPORTED,
                        "repository agent '%s' put the model where this server cannot load it from",
                        wanted->agents[i]->name);
        if (!e)
            dir = s->models[i]->location;
    }
    if (e) {
        agents_end(s);
        return e;
    }
    *source = source_moved(*source, dir, s);
    return NULL;
}

/* Calls every agent, even if one has returned an error. */
static void agents_tell(struct agents_set *s, TRITONREPOAGENT_ActionType action, bool reverse)
{
    for (size_t i = 0; i < s->count; i++)
        log_refusal(repo_agent_model_act(s->models[reverse ? s->count - 1 - i : i], action),
                    action);
}

void agents_loaded(struct agents_set *s)
{
    if (!s)
        return;
    s->complete = true;
    agents_tell(s, TRITONREPOAGENT_ACTION_LOAD_COMPLETE, true);
}

void agents_failed(struct agents_set *s)
{
    if (s)
        agents_tell(s, TRITONREPOAGENT_ACTION_LOAD_FAIL, true);
}

void agents_unload(struct agents_set *s)
{
    if (!s || !s->complete)
        return;
    s->complete = false;
    agents_tell(s, TRITONREPOAGENT_ACTION_UNLOAD, false);
}

struct err *agents_stamp(struct source *source, const struct source_look *look, uint64_t *ret)
{
    uint64_t all = look->beside * 31 + look->config;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < look->version_count; i++) {
        uint64_t stamp;
        e = source_fetch(source, look->versions[i]);
        if (!e)
            e = source_stamp(source, look->versions[i], &stamp);
        if (!e)
            /* the sum does not depend on the order of the versions */
            all += (stamp ^ (uint64_t)look->versions[i]) * 31;
    }
    if (!e)
        *ret = all;
    return e;
}
