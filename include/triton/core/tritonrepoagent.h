#ifndef TRITONREPOAGENT_H
#define TRITONREPOAGENT_H

/* The C interface between the server and a repository agent: a library that sees, and may replace,
 * a model's files before they are loaded. API version 0.1.
 *
 * The rules at the top of tritonserver.h hold here too. Calls about one model come one at a time;
 * calls about different models come at the same time.
 */

#include "triton/core/tritonserver.h"
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRITONREPOAGENT_DECLSPEC __attribute__((visibility("default")))
#define TRITONREPOAGENT_ISPEC    __attribute__((visibility("default")))
#else
#define TRITONREPOAGENT_DECLSPEC
#define TRITONREPOAGENT_ISPEC
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TRITONREPOAGENT_Agent TRITONREPOAGENT_Agent;
typedef struct TRITONREPOAGENT_AgentModel TRITONREPOAGENT_AgentModel;

/* ---- Version ---- */

#define TRITONREPOAGENT_API_VERSION_MAJOR 0
#define TRITONREPOAGENT_API_VERSION_MINOR 1

/* TRITONREPOAGENT_ApiVersion - tell which agent interface the server speaks.
 * major, minor  out */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ApiVersion(uint32_t *major,
                                                                        uint32_t *minor);

/* ---- Files of a model ---- */

typedef enum TRITONREPOAGENT_artifacttype_enum {
    TRITONREPOAGENT_ARTIFACT_FILESYSTEM = 0,       /* a directory on this machine */
    TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM = 1 /* an address such as s3://bucket/model */
} TRITONREPOAGENT_ArtifactType;

/* A model's life: LOAD, then LOAD_COMPLETE, UNLOAD, UNLOAD_COMPLETE; or LOAD, then LOAD_FAIL. */
typedef enum TRITONREPOAGENT_actiontype_enum {
    TRITONREPOAGENT_ACTION_LOAD = 0,
    TRITONREPOAGENT_ACTION_LOAD_COMPLETE = 1,
    TRITONREPOAGENT_ACTION_LOAD_FAIL = 2,
    TRITONREPOAGENT_ACTION_UNLOAD = 3,
    TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE = 4
} TRITONREPOAGENT_ActionType;

/* TRITONREPOAGENT_ModelRepositoryLocation - tell where the model's files lie; they must not be
 *   changed there.
 * location  out: borrowed from the model */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location);

/* TRITONREPOAGENT_ModelRepositoryLocationAcquire - get an empty temporary directory for files of
 *   the agent's.
 * artifact_type  FILESYSTEM
 * location       out: borrowed; release it in ModelFinalize */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location);

/* TRITONREPOAGENT_ModelRepositoryLocationRelease - delete a directory that was acquired, and its
 *   contents. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model, const char *location);

/* TRITONREPOAGENT_ModelRepositoryUpdate - load the model from another place; during ACTION_LOAD
 *   only.
 * location  copied; what lies there must stay as it is until ModelFinalize */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location);

/* ---- Parameters, configuration, state ---- */

/* TRITONREPOAGENT_ModelParameterCount - count the parameters that the configuration gives this
 *   agent. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                                    uint32_t *count);

/* TRITONREPOAGENT_ModelParameter - give a parameter.
 * index  below the count */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                               const uint32_t index, const char **parameter_name,
                               const char **parameter_value);

/* TRITONREPOAGENT_ModelConfig - give the model's configuration.
 * config_version  1
 * model_config    out: owned by the caller; NULL when the model has no config.pbtxt */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const uint32_t config_version, TRITONSERVER_Message **model_config);

/* TRITONREPOAGENT_ModelState - give what ModelSetState stored; NULL at first. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel *model, void **state);

/* TRITONREPOAGENT_ModelSetState - store a pointer of the agent's. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel *model, void *state);

/* TRITONREPOAGENT_State - give what SetState stored; NULL at first. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_State(TRITONREPOAGENT_Agent *agent,
                                                                   void **state);

/* TRITONREPOAGENT_SetState - store a pointer of the agent's. */
TRITONREPOAGENT_DECLSPEC TRITONSERVER_Error *TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent *agent,
                                                                      void *state);

/* ---- What an agent exports ---- */

/* ModelAction is required, everything else is optional. */

/* TRITONREPOAGENT_Initialize - prepare the agent; once. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent);

/* TRITONREPOAGENT_Finalize - free what the agent holds and join its threads; once, at last. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent *agent);

/* TRITONREPOAGENT_ModelInitialize - prepare for a model; before its first action. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* TRITONREPOAGENT_ModelFinalize - free what was held for a model; after its last action. */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model);

/* TRITONREPOAGENT_ModelAction - take part in a step of a model's life; success at once if the
 *   step is of no interest.
 * errors  during ACTION_LOAD the model does not load; otherwise logged */
TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const TRITONREPOAGENT_ActionType action_type);

#ifdef __cplusplus
}
#endif

#endif /* TRITONREPOAGENT_H */
