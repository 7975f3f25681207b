#pragma once
/* A model repository on the local disk: REPOSITORY/MODEL/[config.pbtxt],
 * REPOSITORY/MODEL/VERSION/... Blocks; not for loop threads.
 * source  spec/model_repository.txt, Repository Layout */
#include "base/err.h"

#include <stdint.h>
#include <stddef.h>

/* The most models of a repository, versions of a model, and files of a version that are looked
 * at. */
#define LOCAL_MAX_ENTRIES ((size_t)100000)

struct local_names {
    char **names; /* sorted */
    size_t count;
};

/* local_models - the names of the model directories of a repository.
 * errors  NOT_FOUND: "failed to stat file PATH" when the repository is not there */
struct err *local_models(const char *repository, struct local_names *ret);

/* local_directories - the names of the directories in a model's directory: its versions, and
 * what is ignored. */
struct err *local_directories(const char *model_dir, struct local_names *ret);

/* local_files - the names in a version directory, files and directories; a directory's name ends
 * in '/'. */
struct err *local_files(const char *model_dir, int64_t version, struct local_names *ret);
void local_names_fini(struct local_names *n);

/* local_read_config - MODEL/configs/NAME.pbtxt if a name is given and the file is there, else
 * MODEL/config.pbtxt; *ret_text is NULL when there is none.
 * name      a file's name, or NULL
 * ret_path  how messages name it; both are the caller's (mem_free) */
struct err *local_read_config(const char *model_dir, const char *name, char **ret_text,
                              size_t *ret_len, char **ret_path);
