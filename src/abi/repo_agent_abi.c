/* TRITONREPOAGENT_ functions, called by repository agents. */
#include "plugin/handle.h"
#include "model/config.h"
#include "plugin/message.h"
#include "plugin/repo_agent.h"
#include "triton/core/tritonrepoagent.h"

static const char agent_type[] = "TRITONREPOAGENT_Agent";
static const char model_type[] = "TRITONREPOAGENT_AgentModel";

/* The model of a call; NULL with an error if a handle is invalid. */
static struct repo_agent_model *repo_agent_abi_model(TRITONREPOAGENT_Agent *agent,
                                                     TRITONREPOAGENT_AgentModel *model,
                                                     TRITONSERVER_Error **ret_error)
{
    struct repo_agent_model *m = repo_agent_model_of(model);
    *ret_error = NULL;
    if (!repo_agent_of(agent))
        *ret_error = handle_invalid(agent_type);
    else if (!m)
        *ret_error = handle_invalid(model_type);
    return m;
}

TRITONSERVER_Error *TRITONREPOAGENT_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONREPOAGENT_API_VERSION_MAJOR;
    *minor = TRITONREPOAGENT_API_VERSION_MINOR;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocation(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ArtifactType *artifact_type, const char **location)
{
    TRITONSERVER_Error *e;
    const struct repo_agent_model *m = repo_agent_abi_model(agent, model, &e);
    if (e)
        return e;
    *artifact_type = m->location_type;
    *location = m->location;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationAcquire(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char **location)
{
    TRITONSERVER_Error *e;
    struct repo_agent_model *m = repo_agent_abi_model(agent, model, &e);
    return e ? e : handle_error(repo_agent_model_acquire(m, artifact_type, location));
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryLocationRelease(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model, const char *location)
{
    (void)location; /* there is at most one */
    TRITONSERVER_Error *e;
    struct repo_agent_model *m = repo_agent_abi_model(agent, model, &e);
    return e ? e : handle_error(repo_agent_model_give_up(m));
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelRepositoryUpdate(
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ArtifactType artifact_type, const char *location)
{
    TRITONSERVER_Error *e;
    struct repo_agent_model *m = repo_agent_abi_model(agent, model, &e);
    if (e)
        return e;
    if (!location)
        return HANDLE_NULL("location");
    return handle_error(repo_agent_model_move(m, artifact_type, location));
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelParameterCount(TRITONREPOAGENT_Agent *agent,
                                                        TRITONREPOAGENT_AgentModel *model,
                                                        uint32_t *count)
{
    TRITONSERVER_Error *e;
    const struct repo_agent_model *m = repo_agent_abi_model(agent, model, &e);
    if (e)
        return e;
    *count = (uint32_t)m->param_count;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelParameter(TRITONREPOAGENT_Agent *agent,
                                                   TRITONREPOAGENT_AgentModel *model,
                                                   const uint32_t index,
                                                   const char **parameter_name,
                                                   const char **parameter_value)
{
    TRITONSERVER_Error *e;
    const struct repo_agent_model *m = repo_agent_abi_model(agent, model, &e);
    if (e)
        return e;
    if (index >= m->param_count)
        return handle_error(err_new(STATUS_INVALID_ARG, "index out of range for model parameters"));
    *parameter_name = m->params[index].name;
    *parameter_value = m->params[index].value;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelConfig(TRITONREPOAGENT_Agent *agent,
                                                TRITONREPOAGENT_AgentModel *model,
                                                const uint32_t config_version,
                                                TRITONSERVER_Message **model_config)
{
    TRITONSERVER_Error *e;
    const struct repo_agent_model *m = repo_agent_abi_model(agent, model, &e);
    if (e)
        return e;
    if (config_version != 1)
        return handle_error(
            err_new(STATUS_INVALID_ARG,
                    "model configuration version %u not supported, supported versions are: 1",
                    config_version));
    *model_config = NULL;
    if (m->config) {
        size_t len;
        char *json = config_print_json(m->config, &len);
        *model_config = (TRITONSERVER_Message *)message_new(json, len);
    }
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelState(TRITONREPOAGENT_AgentModel *model, void **state)
{
    const struct repo_agent_model *m = repo_agent_model_of(model);
    if (!m)
        return handle_invalid(model_type);
    *state = m->state;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_ModelSetState(TRITONREPOAGENT_AgentModel *model, void *state)
{
    struct repo_agent_model *m = repo_agent_model_of(model);
    if (!m)
        return handle_invalid(model_type);
    m->state = state;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_State(TRITONREPOAGENT_Agent *agent, void **state)
{
    const struct repo_agent *a = repo_agent_of(agent);
    if (!a)
        return handle_invalid(agent_type);
    *state = a->state;
    return NULL;
}

TRITONSERVER_Error *TRITONREPOAGENT_SetState(TRITONREPOAGENT_Agent *agent, void *state)
{
    struct repo_agent *a = repo_agent_of(agent);
    if (!a)
        return handle_invalid(agent_type);
    a->state = state;
    return NULL;
}
