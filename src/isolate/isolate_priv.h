#pragma once
/* The objects of the parent's side of an isolated model. Private to isolate/. */
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "os/loop.h"
#include "os/mutex.h"
#include "os/process/spawn.h"
#include "plugin/backend.h"
#include "isolate/wire/isolate_frame.h"
#include "isolate/wire/isolate_message.h"
#include "isolate/wire/isolate_quota.h"
#include "isolate/wire/isolate_settings.h"
#include "isolate/wire/isolate_wire.h"

#include <stdatomic.h>

struct isolate_flight;
struct isolate_pool;
struct plugin_instance;
struct plugin_model;
struct request;
struct stats;
struct thread;

/* A socket; at its other end is a thread of the child. */
struct isolate_lane {
    struct list node;
    int fd;
    struct isolate_frame frame; /* used by the thread that gives orders */
    struct strbuf out;
};

struct isolate_flights {
    struct mutex lock; /* rank THREAD; guards the fields below */
    struct isolate_flight **items;
    uint32_t *generations;
    uint32_t cap;
    uint32_t count;
    uint32_t hint; /* no lower index is free */
    bool closed;   /* the process has ended: no request is added any more */
};

/* One life of the child process. */
struct isolate_session {
    /* held by its owner, callers in an order, and every output in its shared memory */
    atomic_uint refs;
    /* the model's name for messages; owned by the owner, valid while that lives */
    const char *model;
    struct spawn process;
    int control_fd;
    int log_fd;
    int in_fd;
    int out_fd;
    uint8_t *in; /* inputs, written by the server */
    /* ISOLATE_SLOTS bytes, then outputs. The server sets a slot's byte to 1 when it no longer
     * uses the output */
    uint8_t *out;
    size_t shared_bytes;       /* size of `in`, and of `out` without the slots */
    struct isolate_pool *pool; /* allocates places in `in` */
    struct isolate_lane setup;
    struct mutex lanes_lock; /* rank LEAF; guards lanes */
    struct list lanes;
    struct isolate_flights flights;
    struct isolate_quota quota;
    struct stats *stats;
    uint32_t most_rows; /* the most rows of a batch that statistics count */
    bool configured;    /* the process has the published configuration; guarded by the setup lane */
    _Atomic(time_ns) heard; /* when the process last sent something; relaxed */
    atomic_uint executed;   /* number of answered orders; relaxed */
    /* the process broke the protocol; the supervisor ends it. Relaxed, because a post follows */
    atomic_bool doomed;
};

enum isolate_state {
    ISOLATE_LOADING, /* the first process loads: the thread that loads the model gives the orders */
    ISOLATE_UP,
    ISOLATE_RESTARTING, /* a new process loads the model */
    ISOLATE_DOWN,       /* no process runs: until the next one is started, or for good */
};

struct isolate_instance {
    struct list node;
    struct isolate *owner;
    struct plugin_instance *instance;
    struct isolate_lane *lane;      /* in the running session; guarded by owner->lock */
    struct isolate_lane *next_lane; /* in the session that loads; used by the loading thread only */
    uint64_t *batch; /* numbers of the requests it executes; used by the executing thread only */
    size_t batch_cap;
    /* when its Execute began; 0 = none. Relaxed: the supervisor may see it late */
    _Atomic(time_ns) begun;
};

struct isolate {
    struct plugin_backend backend; /* the backend that the model is given */
    char *model;                   /* "model 'x' version 1" */
    char *name;
    char *model_dir;
    int64_t version;
    char *program;
    struct isolate_settings settings;
    struct strbuf hello; /* what each process is told first */
    char *written;       /* the configuration that the backend may complete */
    bool auto_complete;
    struct plugin_model *plugin_model;
    struct stats *stats;
    uint32_t most_rows; /* the most rows of a batch that statistics count */

    /* Used by the supervisor's thread only. */
    struct loop *loop;
    struct thread *supervisor;
    struct thread *restarter;
    struct loop_fd control;
    struct loop_fd log;
    struct loop_fd end;
    struct loop_timer tick;
    struct loop_timer restart;
    struct isolate_frame frame;
    struct log_site said; /* rate limit of the log lines of its processes */
    time_ns trimmed;
    unsigned seen; /* the value of session->executed at the last look */

    struct mutex lock; /* rank MODEL; guards the fields below */
    struct mutex_cond changed;
    enum isolate_state state;
    /* a reference; NULL while there is no process; written by the supervisor */
    struct isolate_session *session;
    struct list instances;
    char *last_end;     /* how the last process ended; "" at first */
    time_ns wait_until; /* orders wait until then for the next process */
    unsigned failures;  /* processes in a row that executed nothing */
    bool initialized;   /* the model was initialized: if the process ends, another one is started */
    bool orderly;       /* the process was told to end */
    bool stopping;
    bool setup_busy; /* a thread gives orders on the setup lane */
    bool reloading;  /* a thread loads the next process: no instance may be added or removed */

    /* Relaxed except for exchanges: each is only a hint that there is something to look at. */
    atomic_bool ready;
    atomic_bool ticking;      /* the supervisor looks again by itself */
    _Atomic(time_ns) retired; /* since when no new requests come; 0 = they still come */
    _Atomic(time_ns) kill_at; /* when the process is killed; 0 = never */
    struct mail start_mail;
    struct mail tick_mail;
    atomic_bool tick_posted;
};
