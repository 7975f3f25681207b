#include "server/start_advice.h"

#include "base/log.h"
#include "cloud/cloud.h"
#include "repo/load/local.h"
#include "server/server.h"

#include <inttypes.h>

void start_advice_budget(const struct server *s)
{
    uint64_t budget = s->options->memory_budget_bytes;
    if (budget && budget < OPTIONS_SMALL_BUDGET)
        LOG_WARN("--memory-budget=%" PRIu64 " counts bytes: requests that need more are refused; "
                 "1073741824 is 1 GiB",
                 budget);
}

void start_advice_repositories(const struct server *s)
{
    for (size_t i = 0; i < s->options->repository_count; i++) {
        const char *path = s->options->repositories[i];
        enum local_kind kind = cloud_is(path) ? LOCAL_REPOSITORY : local_look(path);
        if (kind == LOCAL_MODEL)
            LOG_WARN("'%s' looks like the directory of one model: --model-repository expects the "
                     "directory above it, in which each model has a directory",
                     path);
        else if (kind == LOCAL_EMPTY && s->options->control_mode != OPTIONS_CONTROL_EXPLICIT)
            LOG_WARN("'%s' has no model: it expects a directory for each, MODEL/1/ with the "
                     "model's file in it",
                     path);
    }
    if (s->options->control_mode == OPTIONS_CONTROL_EXPLICIT && !s->options->load_model_count)
        LOG_INFO("no model is loaded: --load-model=NAME loads one at the start, "
                 "POST /v2/repository/models/NAME/load while the server runs");
}
