#pragma once
/* The features of a server. Each lives in a room of its own above this folder, and everybody else
 * knows it by one struct feature; the list of them is server/rooms.c. What a feature does for the
 * requests of a version is the scheduler's, or what stands around that: serve/scheduler.h. */
#include "base/err.h"
#include "serve/scheduler.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;
struct features;
struct model_config;
struct options;
struct serve_version;

/* Any function may be NULL: the feature has nothing to do there. `own` is what open returned, NULL
 * where the options ask for nothing, or nobody opened it. */
struct feature {
    /* make - a scheduler for a version whose configuration asks for one of this feature. */
    scheduler_make_fn *make;
    /* stands_alone - versions of this configuration have neither a backend nor instances. */
    bool (*stands_alone)(const struct Inference__ModelConfig *proto);
    /* check - what can be told of a model's files without loading it.
     * ret_mend  with an error: what to do about it */
    struct err *(*check)(const struct model_config *config, const char *model_dir,
                         const char **ret_mend);

    /* open - what a server with these options has of it. Blocks. close - no version is left. */
    struct err *(*open)(const struct options *o, void **ret_own);
    void (*close)(void *own);
    /* look - before the files of a model are read: what wrap will want to know of them. Blocks.
     * ret     the caller's (mem_free); NULL = nothing */
    struct err *(*look)(const void *own, const char *model_dir, char **ret);
    /* wrap - stand around the scheduler of a version that has not started.
     * seen    what look returned; borrowed */
    void (*wrap)(void *own, struct serve_version *v, const char *seen);
    /* changed - other versions serve from now on. Any thread. */
    void (*changed)(void *own);
};

/* What a server was built with. Schedulers: the first that makes one. Wrappers: from inside to
 * outside (enum scheduler_wrap_slot). */
struct feature_list {
    const struct feature *const *features;
    size_t count;
};

/* features_open - those of one server.
 * list    must outlive it
 * o       NULL = nothing that options ask for
 * errors  of the features' open */
struct err *features_open(const struct feature_list *list, const struct options *o,
                          struct features **ret);

/* features_close - no version is left. NULL is fine. Blocks. */
void features_close(struct features *f);

/* features_make - the scheduler that the configuration of v asks for.
 * errors  of the feature that makes it */
struct err *features_make(const struct features *f, struct serve_version *v,
                          struct scheduler **ret);

/* features_stand_alone, features_check, features_changed - as the functions of struct feature, of
 * any feature; of the first that finds something; of all. */
bool features_stand_alone(const struct features *f, const struct Inference__ModelConfig *proto);
struct err *features_check(const struct feature_list *list, const struct model_config *config,
                           const char *model_dir, const char **ret_mend);
void features_changed(struct features *f);

/* features_look - what each sees in the directory of a model. Blocks.
 * ret     the caller's: features_forget; NULL with an error
 * errors  of the features' look */
struct err *features_look(const struct features *f, const char *model_dir, char ***ret);
void features_forget(const struct features *f, char **seen);

/* features_wrap - all that stands around the scheduler of a version that has not started.
 * seen    of features_look; NULL = nobody looked; borrowed */
void features_wrap(struct features *f, struct serve_version *v, char *const *seen);
