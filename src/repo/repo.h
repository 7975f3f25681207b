#pragma once
/* The repository: which models there are, which versions shall serve, and making it so.
 * Publishes what serves in a serve_table.
 *
 * Operations on one model run one after the other, in the order in which they were asked for;
 * those on different models side by side on the loader threads.
 * docs/decisions/0011-repository-life-cycle.md says why. */
#include "base/err.h"
#include "base/strbuf.h"
#include "repo/load/load.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct repo;
struct serve_table;

/* The most repositories of a server: table_model.places has a bit for each. */
#define REPO_MAX_PATHS 64u

enum repo_mode {
    REPO_MODE_NONE,     /* what is there at the start */
    REPO_MODE_EXPLICIT, /* what is asked for */
    REPO_MODE_POLL,     /* what is there, looked at again and again */
};

struct repo_settings {
    const char *const *paths; /* of the model repositories; borrowed */
    size_t path_count;
    unsigned load_threads; /* models that load at the same time, at least 1 */
    enum repo_mode mode;
    uint32_t poll_secs; /* 0 = never */
    uint32_t retries;   /* how often a version that fails to load is tried again */
    /* EXPLICIT: what to load at the start; "*" alone = all; borrowed */
    const char *const *startup_models;
    size_t startup_count;
    bool namespacing;            /* models of one name are told apart by their repository */
    bool library_upload;         /* files of a load request may be shared libraries */
    const char *agent_directory; /* where repository agents lie; borrowed */
    struct load_context context;
};

/* How an operation ended; called once, on any thread, without locks.
 * e  NULL = it was done; else the receiver's */
typedef void repo_done_fn(void *owner, struct err *e);

enum repo_param_kind {
    /* data is the JSON of a ModelConfig to load with, in place of the one on disk */
    REPO_PARAM_CONFIG,
    REPO_PARAM_FILE,        /* data is the content of the file `name`, "<version>/<file>" */
    REPO_PARAM_FILE_BASE64, /* the same, in base64 */
};

/* Of one load, so that looking at them holds nobody up. */
#define REPO_MAX_PARAMS      10000u
#define REPO_MAX_NAMES_BYTES ((size_t)1 << 20) /* names of files, together */

struct repo_param {
    enum repo_param_kind kind;
    const char *name; /* of a file, without "file:"; ends in NUL */
    const void *data;
    size_t len;
};

/* What to load. Everything is borrowed until the operation is done. */
struct repo_load {
    const char *model;
    const char *repository; /* its path, or the last component of it; NULL or "" = any */
    const struct repo_param *params;
    size_t param_count;
};

struct repo *repo_new(const struct repo_settings *settings, struct serve_table *table);

/* repo_load_all - find every model of every repository and load what the mode asks for; returns
 * when each is ready or has failed. What failed is in the table with its reason, and in the log.
 * Then polling begins. Blocks. A store that takes long is waited for after what other
 * repositories have was begun.
 * ret_failed  how many models do not serve though they should, and stores that cannot be read
 * errors      only when a repository cannot be read at all, or the models to load contradict
 *             each other */
struct err *repo_load_all(struct repo *r, size_t *ret_failed);

/* repo_each_agent - call fn with the name and the library of each repository agent that is
 * loaded, under a lock. */
typedef void repo_agent_fn(void *arg, const char *name, const char *path);
void repo_each_agent(struct repo *r, repo_agent_fn *fn, void *arg);

/* repo_load - load a model, or load it again when it or its configuration changed; with
 * namespacing, every model of that name. Does not block.
 * done    called when the versions serve, or why they do not; what served before then still does
 * errors  refused at once, done is not called: UNAVAILABLE "explicit model load / unload is not
 *         allowed if polling is enabled" in other modes than EXPLICIT, and while the server
 *         stops; INVALID_ARG for a name or parameter; NOT_FOUND for a repository */
struct err *repo_load(struct repo *r, const struct repo_load *what, repo_done_fn *done,
                      void *owner);

/* repo_unload - stop serving a model; with namespacing, every model of that name. Done when
 * nothing new can reach it; requests under way are answered, then its memory goes back. A model
 * that does not serve is no error. Does not block.
 * repository         where it must have been loaded from; NULL or "" = anywhere
 * unload_dependents  also the ensembles that need it, and the models that were loaded along with
 *                    it and that nothing else needs
 * errors             as repo_load */
struct err *repo_unload(struct repo *r, const char *model, const char *repository,
                        bool unload_dependents, repo_done_fn *done, void *owner);

/* repo_rescan - look at the repositories: done once the table shows the models that lie there
 * now. Does not block. */
struct err *repo_rescan(struct repo *r, repo_done_fn *done, void *owner);

/* repo_load_wait, repo_unload_wait, repo_rescan_wait - the same, and wait until it is done. Not
 * on a loop's thread. */
struct err *repo_load_wait(struct repo *r, const struct repo_load *what);
struct err *repo_unload_wait(struct repo *r, const char *model, const char *repository,
                             bool unload_dependents);
struct err *repo_rescan_wait(struct repo *r);

/* repo_places - the bit of table_model.places that a repository's name stands for; all bits for
 * NULL or "".
 * errors  NOT_FOUND, and INVALID_ARG when several paths end in it */
struct err *repo_places(const struct repo *r, const char *name, uint64_t *ret);

/* repo_refuse - the server stops: operations that have not begun end with UNAVAILABLE, and so do
 * later ones. */
void repo_refuse(struct repo *r);

/* repo_unload_all - repo_refuse, wait for operations under way, unpublish everything, wait for
 * requests under way, free the models. Loops still run. Blocks. */
void repo_unload_all(struct repo *r);

/* What a server that stops still has. */
struct repo_left {
    unsigned count;
    /* of clients, that were begun and are not done: loads, unloads, looks at the repositories */
    unsigned operations;
    struct strbuf lines; /* of the log, one for each version; each ends in NUL */
};

/* repo_busy - the versions that have requests under way. repo_live - the models of which a
 * version serves, is being loaded, or is not gone yet; versions that were replaced and are not
 * gone count as well. Their lines are there when those of verbose level 1 are written. Any
 * thread. */
void repo_busy(struct repo *r, struct repo_left *ret);
void repo_live(struct repo *r, struct repo_left *ret);
void repo_left_fini(struct repo_left *l);

/* repo_say_left - log which models are still being loaded or unloaded, which versions are not
 * gone yet, and what each of them waits for: for whoever gives up waiting. Any thread. */
void repo_say_left(struct repo *r);
void repo_free(struct repo *r);
