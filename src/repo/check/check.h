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
};

/* check_repositories - check all repositories. Nothing is loaded, so problems that only a
 * backend can find are not reported. Blocks. */
void check_repositories(const struct check_settings *s, struct check_report *ret);
void check_report_fini(struct check_report *r);

/* check_print - append the report as text for people, or as one JSON object. */
void check_print(const struct check_report *r, bool json, struct strbuf *sb);

/* check_command - run the command `check`: argv[0] is the word itself.
 * features  of the server
 * returns  the exit status: 0 = no problem, 1 = problems, 2 = the command line is wrong */
int check_command(int argc, char **argv, const struct feature_list *features);
