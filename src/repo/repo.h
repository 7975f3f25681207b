#pragma once
/* The repository: it knows which models exist and which versions shall serve, loads and unloads
 * them, and publishes the serving versions in a serve_table.
 *
 * Operations on one model run one after the other, in the order of the requests. Operations on
 * different models run in parallel on the loader threads.
 * docs/decisions/0011-repository-life-cycle.md says why. */
#include "base/err.h"
#include "base/strbuf.h"
#include "repo/load/load.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recent;
struct repo;
struct serve_table;

/* The most repositories of a server: table_model.places has a bit for each. */
#define REPO_MAX_PATHS 64u

enum repo_mode {
    REPO_MODE_NONE,     /* load what exists at the start */
    REPO_MODE_EXPLICIT, /* load what clients ask for */
    REPO_MODE_POLL,     /* load what exists, and look again regularly */
};

struct repo_settings {
    const char *const *paths; /* of the model repositories; borrowed */
    size_t path_count;
    unsigned load_threads; /* how many models load at the same time, at least 1 */
    enum repo_mode mode;
    uint32_t poll_secs; /* 0 = never */
    uint32_t retries;   /* how often a version that fails to load is tried again */
    /* EXPLICIT: the models to load at the start; "*" alone = all; borrowed */
    const char *const *startup_models;
    size_t startup_count;
    bool namespacing;            /* models of one name are told apart by their repository */
    bool library_upload;         /* a load request may bring shared libraries */
    const char *agent_directory; /* where repository agents lie; borrowed */
    const char *archives;        /* the directory below which archives lie; borrowed */
    struct recent *recent;       /* gets what did not load; borrowed, may be NULL */
    struct load_context context;
};

/* repo_done_fn - called once when an operation has ended, on any thread, without locks.
 * e  NULL = success; else owned by the receiver */
typedef void repo_done_fn(void *owner, struct err *e);

enum repo_param_kind {
    /* data is the JSON of a ModelConfig that replaces the one on disk */
    REPO_PARAM_CONFIG,
    REPO_PARAM_FILE,        /* data is the content of the file `name`, "<version>/<file>" */
    REPO_PARAM_FILE_BASE64, /* the same, in base64 */
};

/* Limits of one load request, so that checking it delays nobody. */
#define REPO_MAX_PARAMS      10000u
#define REPO_MAX_NAMES_BYTES ((size_t)1 << 20) /* of all file names together */

struct repo_param {
    enum repo_param_kind kind;
    const char *name; /* of a file, without "file:"; ends in NUL */
    const void *data;
    size_t len;
};

/* What to load. Everything is borrowed until the operation has ended. */
struct repo_load {
    const char *model;
    const char *repository; /* its path, or the last component of the path; NULL or "" = any */
    /* a directory outside the repositories from which it is loaded in their place, with the models
     * that it needs, whatever its configuration calls it; NULL = none */
    const char *archive;
    bool step; /* it is loaded for an ensemble of the archive, which may have it or not */
    const struct repo_param *params;
    size_t param_count;
};

struct repo *repo_new(const struct repo_settings *settings, struct serve_table *table);

/* repo_load_all - find all models of all repositories and load those that the mode asks for.
 * Returns when each is ready or has failed; a failure is in the table with its reason, and in
 * the log. Then polling begins. Blocks. Models of slow stores are waited for after the models of
 * other repositories were begun.
 * ret_failed  how many models do not serve although they should, plus the stores that cannot be
 *             read
 * errors      only if a repository on disk cannot be read at all, or the list of models to load
 *             is contradictory */
struct err *repo_load_all(struct repo *r, size_t *ret_failed);

/* repo_each_agent - call fn with the name and the library of each loaded repository agent, under
 * a lock. */
typedef void repo_agent_fn(void *arg, const char *name, const char *path);
void repo_each_agent(struct repo *r, repo_agent_fn *fn, void *arg);

/* repo_load - load a model, or load it again if it or its configuration changed. With
 * namespacing: every model of that name. Does not block.
 * done    called when the versions serve, or with the error; versions that served before then
 *         still serve
 * errors  refused at once, done is not called: UNAVAILABLE "explicit model load / unload is not
 *         allowed if polling is enabled" in modes other than EXPLICIT, and while the server
 *         stops; INVALID_ARG for a name or parameter; NOT_FOUND for a repository
 * Of an archive, `done` also gets INVALID_ARG if the model in it is not clear or does not lie
 * where archives do, and ALREADY_EXISTS if a model that lies elsewhere has the name of one of its
 * models. */
struct err *repo_load(struct repo *r, const struct repo_load *what, repo_done_fn *done,
                      void *owner);

/* repo_unload - stop serving a model. With namespacing: every model of that name. It has ended
 * when no new request can reach the model; requests in flight are answered, then its memory is
 * freed. Unloading a model that does not serve is no error. Does not block.
 * repository         the repository from which it must have been loaded; NULL or "" = any
 * unload_dependents  unload also the ensembles that need it, and the models that were loaded for
 *                    it and that nothing else needs
 * errors             as repo_load */
struct err *repo_unload(struct repo *r, const char *model, const char *repository,
                        bool unload_dependents, repo_done_fn *done, void *owner);

/* repo_rescan - look at the repositories; ends when the table shows the models that are there
 * now. Does not block. */
struct err *repo_rescan(struct repo *r, repo_done_fn *done, void *owner);

/* repo_load_wait, repo_unload_wait, repo_rescan_wait - the same, but wait for the end. Not on a
 * loop's thread. */
struct err *repo_load_wait(struct repo *r, const struct repo_load *what);
struct err *repo_unload_wait(struct repo *r, const char *model, const char *repository,
                             bool unload_dependents);
struct err *repo_rescan_wait(struct repo *r);

/* repo_places - the bit of table_model.places for a repository's name; all bits for NULL or "".
 * errors  NOT_FOUND; INVALID_ARG if several paths end in the name */
struct err *repo_places(const struct repo *r, const char *name, uint64_t *ret);

/* repo_refuse - the server stops: waiting and later operations end with UNAVAILABLE. */
void repo_refuse(struct repo *r);

/* repo_unload_all - call repo_refuse, wait for running operations, unpublish everything, wait
 * for requests in flight, free the models. Loops must still run. Blocks. */
void repo_unload_all(struct repo *r);

/* What is left while the server stops. */
struct repo_left {
    unsigned count;
    /* of clients, begun and not ended: loads, unloads, looks at the repositories */
    unsigned operations;
    struct strbuf lines; /* log lines, one per version; each ends in NUL */
};

/* repo_busy - count the versions that have requests in flight.
 * repo_live - count the models with a version that serves, is being loaded, or is not freed yet,
 * including replaced versions.
 * The lines are written only if verbose level 1 is logged. Any thread. */
void repo_busy(struct repo *r, struct repo_left *ret);
void repo_live(struct repo *r, struct repo_left *ret);
void repo_left_fini(struct repo_left *l);

/* repo_say_left - log which models are still being loaded or unloaded, which versions are not
 * freed yet, and what each waits for. For a caller that gives up waiting. Any thread. */
void repo_say_left(struct repo *r);
void repo_free(struct repo *r);
