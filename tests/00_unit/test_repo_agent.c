/* Repository agents: the order of their calls, what they may do to a model's place, and the
 * functions of the C API that they call. */
#include "base/mem.h"
#include "model/config.h"
#include "os/files/file.h"
#include "plugin/repo_agent.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static int mine;
static TRITONREPOAGENT_ActionType seen[8];
static unsigned seen_count;
static unsigned initialized;
static unsigned finalized;

static void ok(TRITONSERVER_Error *e)
{
    unit_succeeds((struct err *)e);
}

static void look_around(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    TRITONREPOAGENT_ArtifactType type;
    const char *text;
    const char *value;
    uint32_t count;
    void *state = &mine;
    TRITONSERVER_Message *config;
    ok(TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &text));
    assert_string_equal(text, "/models/m");
    ok(TRITONREPOAGENT_ModelParameterCount(agent, model, &count));
    assert_int_equal(count, 2);
    ok(TRITONREPOAGENT_ModelParameter(agent, model, 1, &text, &value));
    assert_string_equal(text, "b");
    assert_string_equal(value, "2");
    unit_fails((struct err *)TRITONREPOAGENT_ModelParameter(agent, model, 2, &text, &value),
               STATUS_INVALID_ARG, "index out of range");
    unit_fails((struct err *)TRITONREPOAGENT_ModelConfig(agent, model, 2, &config),
               STATUS_INVALID_ARG, "version 2 not supported");
    ok(TRITONREPOAGENT_ModelConfig(agent, model, 1, &config));
    const char *json;
    size_t len;
    ok(TRITONSERVER_MessageSerializeToJson(config, &json, &len));
    assert_non_null(strstr(json, "\"name\":\"m\""));
    ok(TRITONSERVER_MessageDelete(config));
    ok(TRITONREPOAGENT_ModelState(model, &state));
    assert_null(state);
    ok(TRITONREPOAGENT_ModelSetState(model, &mine));
    ok(TRITONREPOAGENT_State(agent, &state));
    assert_null(state);
    ok(TRITONREPOAGENT_SetState(agent, &mine));
    ok(TRITONREPOAGENT_State(agent, &state));
    assert_ptr_equal(state, &mine);
}

static void move_away(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    const char *place;
    const char *same;
    unit_fails((struct err *)TRITONREPOAGENT_ModelRepositoryLocationAcquire(
                   agent, model, TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM, &place),
               STATUS_INVALID_ARG, "TRITONREPOAGENT_ARTIFACT_FILESYSTEM");
    unit_fails(
        (struct err *)TRITONREPOAGENT_ModelRepositoryLocationRelease(agent, model, "/models/m"),
        STATUS_UNAVAILABLE, "No mutable location");
    ok(TRITONREPOAGENT_ModelRepositoryLocationAcquire(agent, model,
                                                      TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &place));
    ok(TRITONREPOAGENT_ModelRepositoryLocationAcquire(agent, model,
                                                      TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &same));
    assert_ptr_equal(place, same);
    assert_true(file_is_dir(place));
    ok(TRITONREPOAGENT_ModelRepositoryUpdate(agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM,
                                             place));
}

static TRITONSERVER_Error *model_initialize(TRITONREPOAGENT_Agent *agent,
                                            TRITONREPOAGENT_AgentModel *model)
{
    (void)agent;
    (void)model;
    initialized++;
    return NULL;
}

static TRITONSERVER_Error *model_finalize(TRITONREPOAGENT_Agent *agent,
                                          TRITONREPOAGENT_AgentModel *model)
{
    finalized++;
    return TRITONREPOAGENT_ModelRepositoryLocationRelease(agent, model, "");
}

static TRITONSERVER_Error *model_action(TRITONREPOAGENT_Agent *agent,
                                        TRITONREPOAGENT_AgentModel *model,
                                        TRITONREPOAGENT_ActionType action)
{
    seen[seen_count++] = action;
    if (action == TRITONREPOAGENT_ACTION_LOAD) {
        look_around(agent, model);
        move_away(agent, model);
    } else {
        unit_fails((struct err *)TRITONREPOAGENT_ModelRepositoryUpdate(
                       agent, model, TRITONREPOAGENT_ARTIFACT_FILESYSTEM, "/elsewhere"),
                   STATUS_INVALID_ARG, "only be updated during TRITONREPOAGENT_ACTION_LOAD");
    }
    return NULL;
}

/* An agent of functions of ours, in place of a library's. */
static struct repo_agent *make_agent(void)
{
    struct repo_agent *a;
    unit_fails(repo_agent_load("/nowhere", "none", &a), STATUS_INVALID_ARG,
               "repository agent 'none': unable to find 'libtritonrepoagent_none.so' for repo "
               "agent 'none', "
               "searched: /nowhere");
    unit_fails(repo_agent_load("/nowhere", "../x", &a), STATUS_INVALID_ARG, "invalid");
    a = MEM_NEW(struct repo_agent);
    a->magic = 0x5241474eu;
    a->name = mem_strdup("ours");
    a->model_initialize = model_initialize;
    a->model_finalize = model_finalize;
    a->model_action = model_action;
    return a;
}

static void test_a_models_life(void **state)
{
    (void)state;
    static const struct repo_agent_param params[] = {{"a", "1"}, {"b", "2"}};
    struct Inference__ModelConfig *config;
    static const char text[] = "name: \"m\"";
    unit_succeeds(config_parse_text(text, strlen(text), "config.pbtxt", &config));
    struct repo_agent *a = make_agent();
    struct repo_agent_model *m;
    unit_succeeds(repo_agent_model_new(a, "/models/m", TRITONREPOAGENT_ARTIFACT_FILESYSTEM, config,
                                       params, 2, &m));
    config_free_proto(config);
    assert_int_equal(initialized, 1);
    unit_fails(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_UNLOAD), STATUS_INTERNAL,
               "from the beginning to TRITONREPOAGENT_ACTION_UNLOAD");
    unit_succeeds(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_LOAD));
    char *place = mem_strdup(m->location);
    assert_true(file_is_dir(place));
    unit_fails(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_LOAD), STATUS_INTERNAL,
               "from TRITONREPOAGENT_ACTION_LOAD to TRITONREPOAGENT_ACTION_LOAD");
    unit_succeeds(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_LOAD_COMPLETE));
    unit_succeeds(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_UNLOAD));
    unit_succeeds(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE));
    unit_fails(repo_agent_model_act(m, TRITONREPOAGENT_ACTION_UNLOAD), STATUS_INTERNAL, "");
    assert_int_equal(seen_count, 4);
    assert_int_equal(seen[3], TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE);
    repo_agent_model_free(m);
    assert_int_equal(finalized, 1);
    assert_false(file_is_dir(place));
    mem_free(place);
    repo_agent_free(a);
}

static TRITONSERVER_Error *refuse(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    (void)agent;
    (void)model;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "not this one");
}

static void test_agent_refuses(void **state)
{
    (void)state;
    struct repo_agent *a = make_agent();
    a->model_initialize = refuse;
    struct repo_agent_model *m = NULL;
    unit_fails(
        repo_agent_model_new(a, "/m", TRITONREPOAGENT_ARTIFACT_FILESYSTEM, NULL, NULL, 0, &m),
        STATUS_INVALID_ARG, "repository agent 'ours': not this one");
    assert_null(m);
    assert_null(repo_agent_model_of(a));
    assert_null(repo_agent_of(NULL));
    repo_agent_free(a);
}

UNIT_MAIN(UNIT(test_a_models_life), UNIT(test_agent_refuses))
