#pragma once
/* Repository agents: libraries that see, and may replace, a model's files before they are
 * loaded. The TRITONREPOAGENT_Agent and TRITONREPOAGENT_AgentModel of the C ABI. Calls about one
 * model come one at a time. */
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
    /* Initialize was called; Finalize is then, also when it failed: it may have left something */
    bool initialized;
    TRITONSERVER_Error *(*finalize)(TRITONREPOAGENT_Agent *);
    TRITONSERVER_Error *(*model_initialize)(TRITONREPOAGENT_Agent *, TRITONREPOAGENT_AgentModel *);
    TRITONSERVER_Error *(*model_finalize)(TRITONREPOAGENT_Agent *, TRITONREPOAGENT_AgentModel *);
    TRITONSERVER_Error *(*model_action)(TRITONREPOAGENT_Agent *, TRITONREPOAGENT_AgentModel *,
                                        TRITONREPOAGENT_ActionType);
    void *state; /* the agent's own */
};

/* A setting of the agent in a model's configuration. */
struct repo_agent_param {
    const char *name;
    const char *value;
};

struct repo_agent_model {
    uint32_t magic;
    struct repo_agent *agent;
    char *location; /* where the model lies now; the agent may have changed it */
    TRITONREPOAGENT_ArtifactType location_type;
    char *acquired;                        /* a temporary directory of the agent's; NULL = none */
    struct Inference__ModelConfig *config; /* owned; NULL = the model has no config.pbtxt */
    struct repo_agent_param *params;       /* owned copies, sorted by nothing: as configured */
    size_t param_count;
    bool begun;                        /* the first action was LOAD */
    bool initialized;                  /* as of the agent, for ModelInitialize and ModelFinalize */
    TRITONREPOAGENT_ActionType action; /* the last one */
    void *state;                       /* the agent's own */
};

/* repo_agent_load - load DIRECTORY/NAME/libtritonrepoagent_NAME.so and initialize it. Blocks.
 * errors  INVALID_ARG for a name that is no file name or a library that is not there; NOT_FOUND
 *         without its ModelAction; the agent's own */
struct err *repo_agent_load(const char *directory, const char *name, struct repo_agent **ret);

/* repo_agent_free - finalize it; no model of it is left. The library stays mapped. NULL is fine. */
void repo_agent_free(struct repo_agent *a);

/* repo_agent_model_new - a model that the agent looks after, and its ModelInitialize.
 * location  where its files lie; copied
 * config    copied; NULL = it has none
 * params    count of them, copied
 * errors    the agent's own */
struct err *repo_agent_model_new(struct repo_agent *a, const char *location,
                                 TRITONREPOAGENT_ArtifactType type,
                                 const struct Inference__ModelConfig *config,
                                 const struct repo_agent_param *params, size_t count,
                                 struct repo_agent_model **ret);

/* repo_agent_model_act - let it take part in a step of the model's life; m->location may be
 * another one after LOAD.
 * errors  INTERNAL for a step out of order; the agent's own */
struct err *repo_agent_model_act(struct repo_agent_model *m, TRITONREPOAGENT_ActionType action);

/* repo_agent_action_name - "TRITONREPOAGENT_ACTION_LOAD" and so on. */
const char *repo_agent_action_name(TRITONREPOAGENT_ActionType action);

/* repo_agent_model_free - its ModelFinalize, and what it acquired goes. NULL is fine. */
void repo_agent_model_free(struct repo_agent_model *m);

/* repo_agent_model_acquire - an empty temporary directory, made at the first call.
 * errors  INVALID_ARG for another type than FILESYSTEM; INTERNAL */
struct err *repo_agent_model_acquire(struct repo_agent_model *m, TRITONREPOAGENT_ArtifactType type,
                                     const char **ret);

/* repo_agent_model_give_up - delete that directory with its contents.
 * errors  UNAVAILABLE when there is none */
struct err *repo_agent_model_give_up(struct repo_agent_model *m);

/* repo_agent_model_move - the model shall be loaded from another place; copied.
 * errors  INVALID_ARG outside of LOAD */
struct err *repo_agent_model_move(struct repo_agent_model *m, TRITONREPOAGENT_ArtifactType type,
                                  const char *location);

/* repo_agent_of, repo_agent_model_of - the object behind an ABI handle; NULL when it is none. */
struct repo_agent *repo_agent_of(void *handle);
struct repo_agent_model *repo_agent_model_of(void *handle);
