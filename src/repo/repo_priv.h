#pragma once
/* Types shared by the files of repo/. */
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

/* How many loaders may run in addition, in place of others that wait. */
#define REPO_MAX_LENT (REPO_MAX_LOADERS / 2)

/* The most waiting jobs, over all models. */
#define REPO_MAX_WAITING 10000u

/* The most directories that cannot be served of which the log tells. */
#define REPO_MAX_UNFIT 1000u

/* A thread ends after this time without work. */
#define REPO_IDLE_NS TIME_S(1)

struct repo_version {
    int64_t number; /* 0 = the model as a whole: why it could not be read */
    enum table_state state;
    char *reason;                  /* NULL when there is none */
    struct serve_version *version; /* owned; NULL unless READY */
    struct source *source;         /* of the version; a reference */
    uint64_t stamp;                /* of its directory when it was loaded */
    unsigned unloading; /* versions of this number that the retirer has and that are shown */
};

enum repo_action {
    REPO_LOAD,
    REPO_UNLOAD,
    REPO_RECHECK, /* something that an ensemble needs has changed: see repo/follow.h */
    REPO_SYNC,    /* does nothing: it ends after all earlier jobs */
};

/* A model. repo->lock guards its fields. While `busy`, the loader that works on the model may
 * use all of them except jobs and places without the lock; it takes the lock to change fields
 * that publishing reads. */
struct repo_model {
    const char *space; /* see repo/spaces.h; borrowed */
    char *name;
    char *title;                 /* the name for messages: "space::name", or only the name */
    struct repo_model *namesake; /* the next model of the same name */
    bool meant;       /* it could be read when a client asked for it, and was not unloaded since */
    struct list jobs; /* waiting jobs, oldest first */
    struct list node; /* linked into repo->ready while it has jobs and is not busy */
    bool busy;
    enum repo_action doing; /* valid while it is busy */
    /* its job waits for no other model any more; it is busy only until `done` was called */
    bool ending;
    const char *awaits; /* the name of the models that its loader waits for; NULL = none */
    bool wanted;
    /* when a client last asked for it, it could be read, but its version policy picked no
     * version */
    bool versionless;
    unsigned retiring;   /* versions that the retirer has */
    unsigned parting;    /* sets of instances that the retirer has, of versions that still serve */
    unsigned finalising; /* how many of those sets execute nothing any more */
    uint64_t places;     /* repositories that had it at the last look */
    uint64_t from;       /* the repository it was loaded from; 0 = none, or only an override */
    struct repo_version *versions; /* ascending */
    size_t version_count;
    bool forced; /* serves with a configuration from a client */
    /* of the files outside its version directories when it was loaded, without the configuration */
    uint64_t stamp;
    uint64_t config_stamp;                /* of the configuration */
    uint64_t mark;                        /* of the numbers of all its versions */
    struct Inference__ModelConfig *proto; /* owned: as the author wrote it; NULL = never loaded */
    struct dependencies dependencies;
    uint64_t tried; /* stamp of all its files when polling last asked for it; 0 = never */
};

/* A name with its models. With namespacing, a name that once meant a model is kept for a while
 * after its last model. */
struct repo_name {
    struct repo_model *first;
    bool used;        /* it once meant a model */
    char *name;       /* owned */
    struct list node; /* linked into repo->spent while it has no model */
};

/* How many names without models are kept; after that the oldest is forgotten. */
#define REPO_MAX_SPENT 256u

struct repo_job {
    struct list node;
    enum repo_action action;
    /* what.model is the repo_model's own name; the repository was resolved to `places` */
    struct repo_load what;
    /* repositories that it may be loaded from, or must have been loaded from */
    uint64_t places;
    bool first;        /* part of the start */
    bool if_there;     /* load: if the model does not exist, end with NOT_FOUND and log nothing */
    bool along;        /* load: an ensemble needs the model; no client asked for it by name */
    bool waited;       /* load: it has already waited for the models that it needs */
    bool up;           /* unload: also unload the ensembles that need the model */
    bool down;         /* unload: also unload the models that were loaded for it */
    uint64_t put_back; /* repo->ended + 1 when it was last put back; 0 = never */
    /* load: the progress of a load that was put back; owned */
    struct operate_attempt *attempt;
    repo_done_fn *done;
    void *owner;
};

/* How many threads free versions at the same time. A backend may take a second for each
 * instance, or never return. */
#define REPO_FINISHERS 16u

/* How long a load waits for removed instances that still execute. */
#define REPO_PARTING_NS TIME_S(1)

/* A version that no longer serves and will be freed. */
struct repo_retired {
    struct list node;
    struct repo *repo;
    struct list all; /* linked into repo.leaving, unless only_some */
    struct repo_model *model;
    int64_t number;
    bool shown; /* an entry of the model shows it as unloading */
    struct serve_version *version;
    /* of the version; a reference. A new load of the same version continues it */
    struct tally *tally;
    struct source *source;
    bool last;      /* it was the last serving version of its source */
    time_ns since;  /* when it was first looked at and not over; 0 = not yet */
    bool told;      /* the log says that requests delay it */
    bool only_some; /* the version itself still serves and is pinned: only `left` is freed */
    struct instances left;
    /* The next fields are for retire_say_left; guarded by the repo's lock. */
    const struct plugin_backend *backend; /* NULL = an ensemble */
    bool finishing;                       /* its threads have ended: it is being freed */
    bool said;
};

/* A caller that waits for a look at the repositories. */
struct repo_look {
    struct list node;
    repo_done_fn *done;
    void *owner;
};

struct repo {
    struct agents *agents; /* owned */
    struct repo_settings settings;
    struct cloud **clouds;    /* per path: the store that it leads to; NULL = on disk */
    struct err *places_error; /* why a path is not a repository */
    struct serve_table *table;

    struct mutex lock; /* rank REPO; guards everything below */
    struct mutex_cond changed;
    bool stopping;    /* new jobs are refused */
    bool starting;    /* repo_load_all publishes what its jobs put off */
    bool unpublished; /* something is not published yet */
    struct repo_model **models;
    size_t model_count;
    struct map by_name; /* name -> repo_name */
    struct list spent;  /* the names without models, oldest first */
    size_t spent_count;
    size_t look_at; /* with more models than this, look whether they still exist */

    struct list ready;   /* models with work for a loader */
    size_t waiting;      /* jobs that no loader has taken */
    uint64_t ended;      /* jobs that have ended so far */
    unsigned operations; /* jobs that loaders work on, except those of the start */
    bool held;           /* loaders take no jobs for now */
    struct thread_seat loaders[REPO_MAX_LOADERS];
    unsigned loader_count; /* running loaders */
    unsigned idle;         /* running loaders that wait for work */
    unsigned lent; /* running loaders that wait for another operation: as many more may run */

    struct map unfit; /* paths of directories whose names are not UTF-8: those that were told of */

    struct list looks;
    bool overgrown;         /* a look is due although no caller waits for one, see look_at */
    struct thread *watcher; /* looks at the repositories; NULL until needed */
    bool watching;          /* polling is on */

    struct list retired;
    struct list leaving;    /* all retired versions that are not freed yet */
    struct thread *retirer; /* NULL = not started, or joined */
    bool retirer_runs;
    bool retirer_stop;
    struct list drained; /* retired versions that no request uses; the finishers free them */
    struct thread_seat finishers[REPO_FINISHERS]; /* each frees one version at a time */
    unsigned finisher_count;                      /* running finishers */
};
