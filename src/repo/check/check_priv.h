#pragma once
/* Types shared by the files of check.h. */
#include "base/map.h"
#include "repo/check/check.h"

struct Inference__ModelConfig;

/* A model that could be read. */
struct check_model {
    const char *space; /* the path of its repository with --model-namespacing; else "" */
    char *name;        /* owned */
    char *title;       /* owned; "space::name", or the name alone */
    char *dir;         /* owned */
    char *config;      /* owned; path of its configuration, for messages */
    bool bad;          /* a problem was told of */
    struct Inference__ModelConfig *proto; /* owned; as written */
};

/* A check in progress. */
struct check {
    const struct check_settings *settings;
    struct check_report *report;
    struct check_model **all; /* owned; in the order of the directories */
    size_t count;
    struct map models; /* title -> check_model of `all`; only the first directory of each title */
};

/* check_add - add one problem; strings are copied. */
void check_add(struct check *c, const char *model, const char *place, const char *what,
               const char *mend);

/* check_add_error - add a problem from an error, which is freed. If the message begins with a
 * path below `path`, that is the place. */
void check_add_error(struct check *c, const char *model, const char *path, struct err *e,
                     const char *mend);

/* check_files_written - true if a configuration has all that is to be known of its inputs and
 * outputs. Backends leave such a one as it is written. */
bool check_files_written(const struct Inference__ModelConfig *p);

/* check_files_model - check versions, definitions, labels and warm-up data of one model. */
void check_files_model(struct check *c, const struct check_model *m);

/* check_ensembles_model - if the model is an ensemble, check that its steps exist and fit, and that
 * it does not need itself. All models have been read. */
void check_ensembles_model(struct check *c, const struct check_model *m);
