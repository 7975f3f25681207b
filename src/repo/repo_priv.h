#pragma once
/* What the files of repo/ share. */
#include "base/list.h"
#include "base/map.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "os/thread_seat.h"
#include "repo/dependencies.h"
#include "repo/repo.h"
#include "serve/instances.h"
#include "serve/table.h"

struct cloud;
struct agents;
struct operate_attempt;
struct source;
struct thread;

#define REPO_MAX_LOADERS 64u

/* So many loaders may run in place of others that wait. */
#define REPO_MAX_LENT (REPO_MAX_LOADERS / 2)

/* Operations that may wait, all models together. */
#define REPO_MAX_WAITING 10000u

/* A thread without work ends after this. */
#define REPO_IDLE_NS TIME_S(1)

struct repo_version {
    int64_t number; /* 0 = the model as a whole: why it could not be read */
    enum table_state state;
    char *reason;                  /* NULL when there is none */
    struct serve_version *version; /* owned; NULL unless READY */
    struct source *source;         /* of version; a reference */
    uint64_t stamp;                /* of its directory when it was loaded */
    unsigned unloading; /* versions of this number that the retirer has and that are shown */
};

enum repo_action {
    REPO_LOAD,
    REPO_UNLOAD,
    REPO_RECHECK, /* what an ensemble needs changed: see repo/follow.h */
    REPO_SYNC,    /* nothing: what was asked for before is done then */
};

/* A model. Its fields are guarded by repo->lock; `busy` lends all of them but jobs and places to
 * the loader that works on it, which still takes the lock to change what publishing reads. */
struct repo_model {
    const char *space; /* see repo/spaces.h; borrowed */
    char *name;
    char *title;                 /* what people are told: "space::name", or the name alone */
    struct repo_model *namesake; /* the next model of the same name */
    bool meant;       /* it could be read when it was asked for, and was not unloaded since */
    struct list jobs; /* that wait, oldest first */
    struct list node; /* in repo->ready while it has jobs and is not busy */
    bool busy;
    enum repo_action doing; /* while it is busy */
    /* busy only until who asked has been told: its job waits for no other model any more */
    bool ending;
    const char *awaits; /* the name of models that its loader waits for; NULL = none */
    bool wanted;
    /* it could be read when it was asked for last, and its version policy picked none */
    bool versionless;
    unsigned retiring;   /* versions that the retirer has */
    unsigned parting;    /* sets of instances that the retirer has, of versions that serve on */
    unsigned finalising; /* of them, those that execute nothing any more */
    uint64_t places;     /* repositories that had it when they were looked at last */
    uint64_t from;       /* the repository it was loaded from; 0 = none, or an override alone */
    struct repo_version *versions; /* ascending */
    size_t version_count;
    bool forced; /* serves with a configuration of the client's */
    /* of what lies beside the versions, when it was loaded; but for its configuration */
    uint64_t stamp;
    uint64_t config_stamp;                /* of that */
    uint64_t mark;                        /* of the numbers of its versions, all that there were */
    struct Inference__ModelConfig *proto; /* owned: as it was written; NULL = never loaded */
    struct dependencies dependencies;
    uint64_t tried; /* of all of it, when the poll asked for it last; 0 = never */
};

/* A name, for as long as there are models of it. With namespacing it stays for a while when one
 * was meant by it once. */
struct repo_name {
    struct repo_model *first;
    bool used;        /* one of them was meant by it once */
    char *name;       /* owned */
    struct list node; /* in repo->spent while there is no model of it */
};

/* Names that meant a model once and are kept though there is none of them any more: past that
 * the oldest is forgotten. */
#define REPO_MAX_SPENT 256u

struct repo_job {
    struct list node;
    enum repo_action action;
    struct repo_load what; /* model is the repo_model's own name; repository was resolved */
    uint64_t places;       /* repositories it may be loaded from, or must have been */
    bool first;            /* asked for by the start */
    bool if_there;     /* a load: where there is none it ends with NOT_FOUND, and no more is said */
    bool along;        /* a load: an ensemble needs it, nobody asked for it by name */
    bool waited;       /* a load: the models that it needs were waited for */
    bool up;           /* an unload: ensembles that need it are unloaded too */
    bool down;         /* an unload: so is what was loaded along with it */
    uint64_t put_back; /* jobs that had ended when it was put back last, and 1 more; 0 = never */
    /* a load that was begun and put back: goes on with this; owned */
    struct operate_attempt *attempt;
    repo_done_fn *done;
    void *owner;
};

/* How many threads free versions at the same time: a backend may take a second for each of its
 * instances, or never end. */
#define REPO_FINISHERS 16u

/* How long a load waits for instances that it took out and that still execute. */
#define REPO_PARTING_NS TIME_S(1)

/* A version that serves no longer, on its way to be freed. */
struct repo_retired {
    struct list node;
    struct repo *repo;
    struct list all; /* in repo.leaving, unless only_some */
    struct repo_model *model;
    int64_t number;
    bool shown; /* an entry of the model shows it as unloading */
    struct serve_version *version;
    /* of version; a reference, which a version that is loaded anew goes on with */
    struct tally *tally;
    struct source *source;
    bool last;      /* the last version of its source that served */
    time_ns since;  /* when it was unpublished */
    bool told;      /* that requests hold it up */
    bool only_some; /* the version serves on, pinned: `left` alone goes */
    struct instances left;
    /* For retire_say_left; under the lock of the repo. */
    const struct plugin_backend *backend; /* NULL = it is an ensemble */
    bool finishing; /* no request holds it any more: the version is being freed */
    bool said;
};

/* Somebody waits for a look at the repositories. */
struct repo_look {
    struct list node;
    repo_done_fn *done;
    void *owner;
};

struct repo {
    struct agents *agents; /* owned */
    struct repo_settings settings;
    struct cloud **clouds;    /* for each path: the store that it leads to; NULL = on the disk */
    struct err *places_error; /* why a path is none */
    struct serve_table *table;

    struct mutex lock; /* rank REPO; guards everything below */
    struct mutex_cond changed;
    bool stopping;    /* nothing new is taken */
    bool starting;    /* repo_load_all publishes what its jobs put off */
    bool unpublished; /* something was put off */
    struct repo_model **models;
    size_t model_count;
    struct map by_name; /* -> repo_name */
    struct list spent;  /* of these, those without a model, the oldest first */
    size_t spent_count;
    size_t look_at; /* with more models than that it is time to look whether they are still there */

    struct list ready;   /* models with work for a loader */
    size_t waiting;      /* jobs that no loader has taken */
    uint64_t ended;      /* jobs so far */
    unsigned operations; /* jobs that loaders work on, but for those of the start */
    bool held;           /* no loader takes one for now */
    struct thread_seat loaders[REPO_MAX_LOADERS];
    unsigned loader_count; /* that run */
    unsigned idle;         /* of them, those that wait for work */
    unsigned lent; /* of them, those that wait for another operation: as many more may run */

    struct list looks;
    bool overgrown;         /* a look is due that nobody waits for: repo.look_at */
    struct thread *watcher; /* looks at the repositories; NULL until it is needed */
    bool watching;          /* poll */

    struct list retired;
    struct list leaving;    /* all that were retired and are not gone */
    struct thread *retirer; /* NULL = never started, or joined */
    bool retirer_runs;
    bool retirer_stop;
    struct list drained; /* of those that were retired: what no request holds, for the finishers */
    struct thread_seat finishers[REPO_FINISHERS]; /* each frees one version at a time */
    unsigned finisher_count;                      /* that run */
};
