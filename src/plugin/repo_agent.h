#pragma once
/* Repository agents: libraries that see, and may replace, a model's files before they are
 * loaded. The TRITONREPOAGENT_Agent and TRITONREPOAGENT_AgentModel of the C ABI. Calls for one
 * model are never concurrent. */
#include "base/err.h"
#include "triton/core/tritonrepoagent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct dl;

struct repo_agent {
    uint32_t magic;
    char *name;
    char *path; /* of its library */
    struct dl *dl;
    /* Initialize was called, so Finalize will be called, even if Initialize failed: it may have
     * allocated something */
    bool initialized;
    TRITONSERVER_Error *(*finalize)(TRITONREPOAGENT_Agent *);
    TRITONSERVER_Error *(*model_initialize)(TRITONREPOAGENT_Agent *, TRITONREPOAGENT_AgentModel *);
    TRITONSERVER_Error *(*model_finalize)(TRITONREPOAGENT_Agent *, TRITONREPOAGENT_AgentModel *);
    TRITONSERVER_Error *(*model_action)(TRITONREPOAGENT_Agent *, TRITONREPOAGENT_AgentModel *,
                                        TRITONREPOAGENT_ActionType);
    void *state; /* owned by the agent */
};

/* A setting of the agent from a model's configuration. */
struct repo_agent_param {
    const char *name;
    const char *value;
};

struct repo_agent_model {
    uint32_t magic;
    struct repo_agent *agent;
    char *location; /* where the model lies; the agent may change it */
    TRITONREPOAGENT_ArtifactType location_type;
    char *acquired;                        /* a temporary directory of the agent; NULL = none */
    struct Inference__ModelConfig *config; /* owned; NULL = the model has no config.pbtxt */
    struct repo_agent_param *params;       /* owned copies, in the order of the configuration */
    size_t param_count;
    bool begun; /* the first action was LOAD */
    /* ModelInitialize was called, so ModelFinalize will be called */
    bool initialized;
    TRITONREPOAGENT_ActionType action; /* the last one */
    void *state;                       /* owned by the agent */
};

/* repo_agent_find - the path DIRECTORY/NAME/libtritonrepoagent_NAME.so of an agent's library.
 * ret     the caller frees it (mem_free); NULL = only whether it is there
 * errors  INVALID_ARG for an invalid name or a missing library */
struct err *repo_agent_find(const char *directory, const char *name, char **ret);

/* repo_agent_load - load DIRECTORY/NAME/libtritonrepoagent_NAME.so and initialize it. Blocks.
 * errors  those of repo_agent_find; NOT_FOUND without ModelAction; the agent's own */
struct err *repo_agent_load(const char *directory, const char *name, struct repo_agent **ret);

/* repo_agent_free - finalize the agent; no model of it is left. The library stays mapped. NULL
 * is fine. */
void repo_agent_free(struct repo_agent *a);

/* repo_agent_model_new - add a model to the agent, and call ModelInitialize.
 * location  where its files lie; copied
 * config    copied; NULL = the model has none
 * params    `count` of them, copied
 * errors    the agent's own */
struct err *repo_agent_model_new(struct repo_agent *a, const char *location,
                                 TRITONREPOAGENT_ArtifactType type,
                                 const struct Inference__ModelConfig *config,
                                 const struct repo_agent_param *params, size_t count,
                                 struct repo_agent_model **ret);

/* repo_agent_model_act - tell the agent about a step of the model's life; LOAD may change
 * m->location.
 * errors  INTERNAL for a step in the wrong order; the agent's own */
struct err *repo_agent_model_act(struct repo_agent_model *m, TRITONREPOAGENT_ActionType action);

/* repo_agent_action_name - "TRITONREPOAGENT_ACTION_LOAD" and so on. */
const char *repo_agent_action_name(TRITONREPOAGENT_ActionType action);

/* repo_agent_model_free - call ModelFinalize and delete the acquired directory. NULL is fine. */
void repo_agent_model_free(struct repo_agent_model *m);

/* repo_agent_model_acquire - get an empty temporary directory; the first call makes it.
 * errors  INVALID_ARG for a type other than FILESYSTEM; INTERNAL */
struct err *repo_agent_model_acquire(struct repo_agent_model *m, TRITONREPOAGENT_ArtifactType type,
                                     const char **ret);

/* repo_agent_model_give_up - delete that directory with its contents.
 * errors  UNAVAILABLE if there is none */
struct err *repo_agent_model_give_up(struct repo_agent_model *m);

/* repo_agent_model_move - load the model from another place; the path is copied.
 * errors  INVALID_ARG outside LOAD */
struct err *repo_agent_model_move(struct repo_agent_model *m, TRITONREPOAGENT_ArtifactType type,
                                  const char *location);

/* repo_agent_of, repo_agent_model_of - the object behind an ABI handle; NULL if the handle is
 * none. */
struct repo_agent *repo_agent_of(void *handle);
struct repo_agent_model *repo_agent_model_of(void *handle);
