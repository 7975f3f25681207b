#include "server/start_advice.h"

#include "base/log.h"
#include "base/mem.h"
#include "cloud/cloud.h"
#include "model/version_policy.h"
#include "os/files/file.h"
#include "repo/load/local.h"
#include "server/server.h"

static bool has_configuration(const char *path)
{
    char *config = file_join(path, "config.pbtxt");
    bool has = file_exists(config);
    mem_free(config);
    return has;
}

enum start_advice_kind start_advice_look(const char *path)
{
    struct local_names names = {0};
    struct err *e = local_directories(path, &names);
    if (e) {
        err_free(e);
        return START_ADVICE_UNREADABLE;
    }
    size_t versions = 0;
    int64_t number;
    for (size_t i = 0; i < names.count; i++)
        versions += version_policy_parse_dir(names.names[i], &number);
    enum start_advice_kind kind = START_ADVICE_REPOSITORY;
    if (has_configuration(path) || (names.count && versions == names.count))
        kind = START_ADVICE_MODEL;
    else if (!names.count)
        kind = START_ADVICE_EMPTY;
    local_names_fini(&names);
    return kind;
}

void start_advice_repositories(const struct server *s)
{
    for (size_t i = 0; i < s->options->repository_count; i++) {
        const char *path = s->options->repositories[i];
        enum start_advice_kind kind =
            cloud_is(path) ? START_ADVICE_REPOSITORY : start_advice_look(path);
        if (kind == START_ADVICE_MODEL)
            LOG_WARN("'%s' looks like the directory of one model: --model-repository expects the "
                     "directory above it, in which each model has a directory",
                     path);
        else if (kind == START_ADVICE_EMPTY && s->options->control_mode == OPTIONS_CONTROL_NONE)
            LOG_WARN("'%s' has no model: it expects a directory for each, MODEL/1/ with the "
                     "model's file in it",
                     path);
    }
}
