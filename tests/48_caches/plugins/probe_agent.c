/* A repository agent that writes down what it hears, and refuses what it is told to refuse.
 * Parameters of a model:
 *   log     the file to write to, a line a call
 *   fail    the call that fails: an action without its TRITONREPOAGENT_ACTION_, or
 *           MODEL_INITIALIZE, MODEL_FINALIZE
 *   move    put the model into a directory of the agent's own: a copy of its config.pbtxt and of
 *           version 1; "bare": of version 1 alone
 *   config  write down whether there is a configuration
 * PROBE_AGENT_LOG and PROBE_AGENT_FAIL of the environment do the same for the agent itself
 * (INITIALIZE, FINALIZE). */
#include "triton/core/tritonrepoagent.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_line(const char *path, const char *call, const char *more)
{
    FILE *f = path && *path ? fopen(path, "ae") : NULL;
    if (!f)
        return;
    fprintf(f, "%s%s%s\n", call, *more ? " " : "", more);
    fclose(f);
}

static TRITONSERVER_Error *refuse_if(const char *wanted, const char *call)
{
    char text[160];
    if (!wanted || strcmp(wanted, call) != 0)
        return NULL;
    snprintf(text, sizeof(text), "probe agent: refused %s", call);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, text);
}

static TRITONSERVER_Error *own_call(const char *call)
{
    write_line(getenv("PROBE_AGENT_LOG"), call, "");
    return refuse_if(getenv("PROBE_AGENT_FAIL"), call);
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent)
{
    uint32_t major, minor;
    TRITONSERVER_Error *err = TRITONREPOAGENT_ApiVersion(&major, &minor);
    if (err)
        return err;
    if (getenv("PROBE_AGENT_NEWER") && major < 9)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                     "probe agent: the agent API of the server is too old for it");
    return own_call("INITIALIZE");
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *TRITONREPOAGENT_Finalize(TRITONREPOAGENT_Agent *agent)
{
    return own_call("FINALIZE");
}

static const char *parameter(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                             const char *name)
{
    uint32_t count = 0;
    TRITONSERVER_ErrorDelete(TRITONREPOAGENT_ModelParameterCount(agent, model, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *key = "";
        const char *value = NULL;
        TRITONSERVER_ErrorDelete(TRITONREPOAGENT_ModelParameter(agent, model, i, &key, &value));
        if (strcmp(key, name) == 0)
            return value;
    }
    return NULL;
}

/* A line with what the agent calls itself in the configuration, so that several of them can be
 * told apart. */
static TRITONSERVER_Error *model_call(TRITONREPOAGENT_Agent *agent,
                                      TRITONREPOAGENT_AgentModel *model, const char *call)
{
    const char *who = parameter(agent, model, "who");
    write_line(parameter(agent, model, "log"), call, who ? who : "");
    return refuse_if(parameter(agent, model, "fail"), call);
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelInitialize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    return model_call(agent, model, "MODEL_INITIALIZE");
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelFinalize(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    return model_call(agent, model, "MODEL_FINALIZE");
}

static TRITONSERVER_Error *move(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    TRITONREPOAGENT_ArtifactType type;
    const char *from;
    const char *to;
    char command[4096];
    TRITONSERVER_Error *err = TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &from);
    if (!err)
        err = TRITONREPOAGENT_ModelRepositoryLocationAcquire(
            agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &to);
    if (err)
        return err;
    bool bare = strcmp(parameter(agent, model, "move"), "bare") == 0;
    snprintf(command, sizeof(command), "cp -r '%s/%s' '%s/1' '%s/'", from,
             bare ? "1" : "config.pbtxt", from, to);
    if (system(command) != 0)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "probe agent: cannot copy");
    write_line(parameter(agent, model, "log"), "MOVED", "");
    return TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, type, to);
}

static void tell_config(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *err = TRITONREPOAGENT_ModelConfig(agent, model, 1, &message);
    write_line(parameter(agent, model, "log"), "CONFIG",
               err       ? TRITONSERVER_ErrorMessage(err)
               : message ? "there"
                         : "none");
    TRITONSERVER_ErrorDelete(err);
    if (message)
        TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const TRITONREPOAGENT_ActionType action)
{
    static const char *const names[] = {"LOAD", "LOAD_COMPLETE", "LOAD_FAIL", "UNLOAD",
                                        "UNLOAD_COMPLETE"};
    TRITONSERVER_Error *err = model_call(agent, model, names[action]);
    if (!err && action == TRITONREPOAGENT_ACTION_LOAD && parameter(agent, model, "config"))
        tell_config(agent, model);
    if (!err && action == TRITONREPOAGENT_ACTION_LOAD && parameter(agent, model, "move"))
        err = move(agent, model);
    return err;
}
