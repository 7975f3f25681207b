#pragma once
/* A model repository on the local disk: REPOSITORY/MODEL/[config.pbtxt],
 * REPOSITORY/MODEL/VERSION/... Blocks; not for loop threads.
 * source  spec/model_repository.txt, Repository Layout */
#include "base/err.h"

#include <stdint.h>
#include <stddef.h>

/* The most models of a repository, versions of a model, and files of a version. */
#define LOCAL_MAX_ENTRIES ((size_t)100000)

struct local_names {
    char **names; /* sorted */
    size_t count;
};

/* local_models - list the model directories of a repository.
 * errors  NOT_FOUND: "failed to stat file PATH" if the repository does not exist */
struct err *local_models(const char *repository, struct local_names *ret);

/* local_directories - list the directories in a model's directory: its versions, and others that
 * are ignored. */
struct err *local_directories(const char *model_dir, struct local_names *ret);

/* local_files - list a version's directory; the name of a directory ends in '/'. */
struct err *local_files(const char *model_dir, int64_t version, struct local_names *ret);
void local_names_fini(struct local_names *n);

/* local_read_config - read MODEL/configs/NAME.pbtxt if a name is given and the file exists, else
 * MODEL/config.pbtxt; *ret_text is NULL if there is none.
 * name      a file's name, or NULL
 * ret_path  the path for messages; the caller frees it and the text (mem_free) */
struct err *local_read_config(const char *model_dir, const char *name, char **ret_text,
                              size_t *ret_len, char **ret_path);

/* What a directory that was given as a repository looks like. */
enum local_kind {
    LOCAL_REPOSITORY,
    LOCAL_MODEL,      /* of one model: it has a configuration, or only version directories */
    LOCAL_EMPTY,      /* it has no subdirectory */
    LOCAL_UNREADABLE, /* or it does not exist */
};

/* local_look - classify a directory. */
enum local_kind local_look(const char *path);
