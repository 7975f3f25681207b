#pragma once
/* The features of a server. Each feature lives in a folder of its own above this one; other
 * folders know it only as a struct feature. server/rooms.c lists all features. The scheduler of
 * a version, and the wrappers around it (serve/scheduler.h), do the work for requests. */
#include "base/err.h"
#include "serve/scheduler.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;
struct features;
struct model_config;
struct options;
struct serve_version;

/* Any function may be NULL if the feature has nothing to do there. `own` is what open returned;
 * it is NULL if the options do not ask for the feature, or if open was not called. */
struct feature {
    /* make - create the scheduler of a version whose configuration asks for this feature. */
    scheduler_make_fn *make;
    /* stands_alone - true if a version of this configuration has neither a backend nor
     * instances. */
    bool (*stands_alone)(const struct Inference__ModelConfig *proto);
    /* check - find problems in a model's files without loading the model.
     * ret_mend  with an error: how to repair the problem */
    struct err *(*check)(const struct model_config *config, const char *model_dir,
                         const char **ret_mend);

    /* open - create the feature's state for a server with these options. Blocks.
     * close - free that state; no version exists any more. */
    struct err *(*open)(const struct options *o, void **ret_own);
    void (*close)(void *own);
    /* look - called before the files of a model are read: collect what wrap will need. Blocks.
     * ret     owned by the caller (mem_free); NULL = nothing */
    struct err *(*look)(const void *own, const char *model_dir, char **ret);
    /* wrap - put a wrapper around the scheduler of a version that has not started.
     * seen    what look returned; borrowed */
    void (*wrap)(void *own, struct serve_version *v, const char *seen);
    /* changed - the set of versions that serve has changed. Any thread. */
    void (*changed)(void *own);
};

/* The features that a server was built with. The first feature whose make returns a scheduler
 * provides it. Wrappers are applied from the inside to the outside (enum scheduler_wrap_slot). */
struct feature_list {
    const struct feature *const *features;
    size_t count;
};

/* features_open - open all features for one server.
 * list    borrowed until features_close
 * o       NULL = no options, nothing is asked for
 * errors  those of the features' open */
struct err *features_open(const struct feature_list *list, const struct options *o,
                          struct features **ret);

/* features_close - close all features; no version exists any more. NULL is fine. Blocks. */
void features_close(struct features *f);

/* features_make - create the scheduler that the configuration of v asks for.
 * errors  those of the feature that makes it */
struct err *features_make(const struct features *f, struct serve_version *v,
                          struct scheduler **ret);

/* features_stand_alone - true if stands_alone of any feature is true.
 * features_check - the error of the first feature whose check finds one.
 * features_changed - call changed of every feature. */
bool features_stand_alone(const struct features *f, const struct Inference__ModelConfig *proto);
struct err *features_check(const struct feature_list *list, const struct model_config *config,
                           const char *model_dir, const char **ret_mend);
void features_changed(struct features *f);

/* features_look - call look of every feature for a model's directory. Blocks.
 * ret     owned by the caller (features_forget); NULL with an error
 * errors  those of the features' look */
struct err *features_look(const struct features *f, const char *model_dir, char ***ret);
void features_forget(const struct features *f, char **seen);

/* features_wrap - put all wrappers around the scheduler of a version that has not started.
 * seen    from features_look; NULL = features_look was not called; borrowed */
void features_wrap(struct features *f, struct serve_version *v, char *const *seen);
