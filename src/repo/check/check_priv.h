#pragma once
/* What the files of check.h share. */
#include "base/map.h"
#include "repo/check/check.h"

struct Inference__ModelConfig;

/* A model that could be read. */
struct check_model {
    const char *space; /* the path of its repository, where they are told apart by it; else "" */
    char *name;        /* owned */
    char *title;       /* owned; "space::name", or the name alone */
    struct Inference__ModelConfig *proto; /* owned; as written */
};

/* A check under way. */
struct check {
    const struct check_settings *settings;
    struct check_report *report;
    struct map models; /* title -> check_model (owned); the first directory of each */
};

/* check_add - one problem; strings are copied. */
void check_add(struct check *c, const char *model, const char *place, const char *what,
               const char *mend);

/* check_add_error - a problem from an error, which is freed: the place is what the message
 * begins with, if that is below `path`. */
void check_add_error(struct check *c, const char *model, const char *path, struct err *e,
                     const char *mend);

/* check_files_model - versions, definitions, labels and warm-up data of one model.
 * written  its configuration, without defaults; borrowed */
void check_files_model(struct check *c, const char *model, const char *dir,
                       const struct Inference__ModelConfig *written);

/* check_ensembles - that the steps of every ensemble are there, and that none needs itself. */
void check_ensembles(struct check *c);
