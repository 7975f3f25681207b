#pragma once
/* Checks model repositories without serving them: reports every problem that the files show,
 * with its place and how to repair it. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct feature_list;
struct strbuf;

struct check_problem {
    char *model; /* "" = the repository itself */
    char *place; /* a path, with line and column where it has them */
    char *what;
    char *mend; /* how to repair it */
};

struct check_report {
    struct check_problem *problems; /* by repository and model, in the order of the directories */
    size_t count;
    size_t models; /* number of models that were read */
};

struct check_settings {
    const char *const *paths;
    size_t path_count;
    const char *config_name;             /* as --model-config-name; NULL = none */
    bool strict;                         /* configurations must be complete */
    bool namespacing;                    /* as --model-namespacing */
    const struct feature_list *features; /* they check their own files */
    const char *backend_directory;       /* as --backend-directory */
    const char *agent_directory;         /* as --repoagent-directory */

    /* load - load a model as the server would, and unload it; NULL = models are not loaded. Models
     * with other problems are not loaded.
     * errors  what the server would say */
    struct err *(*load)(void *arg, const char *model);
    void *arg;
};

/* check_repositories - check all repositories. Problems that only a backend can find are
 * reported of models that are loaded. Blocks. */
void check_repositories(const struct check_settings *s, struct check_report *ret);
void check_report_fini(struct check_report *r);

/* check_print - append the report as text for people, or as one JSON object. */
void check_print(const struct check_report *r, bool json, struct strbuf *sb);
