/* A repository agent that refuses a model if its files do not have the checksums in its
 * configuration:
 *
 *   model_repository_agents { agents [ { name: "checksum"
 *     parameters { key: "MD5:1/model.onnx" value: "0123456789abcdef0123456789abcdef" } } ] }
 *
 * Algorithms: MD5, SHA256. Paths begin at the model's directory. */
#include "checksum/digest.h"
#include "common/berr.h"
#include "triton/core/tritonrepoagent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Makes location/path; NULL if there is no memory. */
static char *checksum_agent_join(const char *location, const char *path)
{
    size_t size = strlen(location) + strlen(path) + 2;
    char *full = malloc(size);
    if (full)
        snprintf(full, size, "%s/%s", location, path);
    return full;
}

/* Checks one parameter: "<algorithm>:<path>" and the expected digest of the file. */
static TRITONSERVER_Error *checksum_agent_check(const char *location, const char *key,
                                                const char *expected)
{
    const char *colon = strchr(key, ':');
    if (!colon)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "failed to parse key: %s", key);
    const char *algorithm = digest_find(key, (size_t)(colon - key));
    if (!algorithm)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "Unsupported checksum algorithm: %.*s",
                        (int)(colon - key), key);
    char *full = checksum_agent_join(location, colon + 1);
    if (!full)
        return berr_no_memory();
    char found[DIGEST_TEXT] = "";
    TRITONSERVER_Error *err = digest_of_file(algorithm, full, colon + 1, found);
    free(full);
    if (!err && strcasecmp(found, expected) != 0)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "Mismatched %s hash for file %s, expect: %s, got: %s", algorithm, colon + 1,
                       expected, found);
    return err;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
                            const TRITONREPOAGENT_ActionType action_type)
{
    if (action_type != TRITONREPOAGENT_ACTION_LOAD)
        return NULL;
    TRITONREPOAGENT_ArtifactType type;
    const char *location;
    uint32_t count;
    TRITONSERVER_Error *err =
        TRITONREPOAGENT_ModelRepositoryLocation(agent, model, &type, &location);
    if (!err && type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "Unsupported filesystem: %d", (int)type);
    if (!err)
        err = TRITONREPOAGENT_ModelParameterCount(agent, model, &count);
    for (uint32_t i = 0; !err && i < count; i++) {
        const char *key;
        const char *value;
        err = TRITONREPOAGENT_ModelParameter(agent, model, i, &key, &value);
        if (!err)
            err = checksum_agent_check(location, key, value);
    }
    return err;
}
